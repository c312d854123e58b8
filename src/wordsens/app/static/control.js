// A labelled control of the browser's own: a text area, a line, a list or a slider. It tells its value as it changes.
export default {
  props: { kind: String, name: String, label: String, hint: String, value: [String, Number], options: Array, least: Number,
    most: Number, step: Number, unit: String, rows: Number, keep: String },
  data() {
    return { current: this.value };
  },
  watch: {
    value(given) {
      this.current = given;
    },
  },
  mounted() {
    // The server may be started anew under an open page: what was typed outlives that, in this tab alone.
    const kept = this.keep && sessionStorage.getItem(this.place());
    if (!kept || kept === this.value) return;
    this.current = kept;
    this.$emit("kept", kept);
  },
  methods: {
    place() {
      return `${this.keep} ${location.href}`;
    },
    change(value) {
      this.current = this.kind === "range" ? Number(value) : value;
      if (this.keep) sessionStorage.setItem(this.place(), this.current);
      this.$emit("value", this.current);
    },
  },
  template: `
    <div class="control" :class="kind">
      <label :for="name">{{ label }}<output v-if="kind === 'range'" :for="name">{{ current }}{{ unit }}</output></label>
      <textarea v-if="kind === 'textarea'" :id="name" dir="auto" :rows="rows" :value="current" :aria-describedby="hint ? name + '-hint' : null"
        @input="change($event.target.value)"></textarea>
      <select v-else-if="kind === 'select'" :id="name" :value="current" @change="change($event.target.value)">
        <option v-for="[key, shown] in options" :key="key" :value="key">{{ shown }}</option>
      </select>
      <input v-else :id="name" :type="kind" :value="current" :min="least" :max="most" :step="step"
        :aria-valuetext="kind === 'range' ? current + (unit || '') : null" @input="change($event.target.value)">
      <p v-if="hint" class="hint" :id="name + '-hint'">{{ hint }}</p>
    </div>`,
};
