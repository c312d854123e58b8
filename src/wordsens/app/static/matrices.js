// Attention as tables whose cells are coloured, side by side.
export default {
  props: { matrices: Array },
  template: `
    <div class="matrices">
      <div v-for="matrix in matrices" :key="matrix.title" class="scroll" role="region" tabindex="0" :aria-label="matrix.title">
        <table class="matrix">
          <caption><bdi>{{ matrix.title }}</bdi></caption>
          <thead><tr><td></td><th v-for="([name, changed], at) in matrix.names" :key="at" scope="col" :class="{ changed }"><bdi>{{ name }}</bdi></th></tr></thead>
          <tbody><tr v-for="(row, at) in matrix.cells" :key="at">
            <th scope="row" :class="{ changed: matrix.names[at][1] }"><bdi>{{ matrix.names[at][0] }}</bdi></th>
            <td v-for="([shown, level], to) in row" :key="to" :class="'s' + level">{{ shown }}</td>
          </tr></tbody>
        </table>
      </div>
    </div>`,
};
