// A table: rows of texts and numbers, which stand to the right.
export default {
  props: { label: String, headings: Array, rows: Array },
  template: `
    <div class="scroll" role="region" tabindex="0" :aria-label="label">
      <table>
        <thead><tr><th v-for="(heading, at) in headings" :key="at" scope="col" :class="{ n: typeof (rows[0] || [])[at] === 'number' }"><bdi>{{ heading }}</bdi></th></tr></thead>
        <tbody><tr v-for="(row, at) in rows" :key="at">
          <td v-for="(cell, to) in row" :key="to" :class="{ n: typeof cell === 'number', wrap: String(cell).length > 30 }" dir="auto">{{ typeof cell === "number" ? Number(cell.toPrecision(3)) : cell }}</td>
        </tr></tbody>
      </table>
    </div>`,
};
