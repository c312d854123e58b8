// A labelled native control: it sends its value as it changes, and Enter, which with `lines` starts a line; with `saved`
// its value outlives a restart of the server.
export default {
  props: { kind: String, name: String, label: String, hint: String, value: [String, Number], options: Array, least: Number,
    most: Number, step: Number, unit: String, rows: Number, lines: Boolean, saved: Boolean, turn: Number },
  data() {
    return { current: this.value };
  },
  watch: {
    // The server changes the value, perhaps to what it was before something was typed.
    turn() {
      this.current = this.value;
      this.save();
    },
  },
  mounted() {
    // What was typed stays in this tab alone; a text in the link comes first.
    const typed = this.saved && !new URLSearchParams(location.search).has(this.name) && sessionStorage.getItem(this.place());
    if (!typed || typed === this.value) return this.save();
    this.change(typed);
    this.$emit("enter");
  },
  methods: {
    place() {
      return `wordsens ${location.pathname} ${this.name}`;
    },
    save() {
      if (this.saved) sessionStorage.setItem(this.place(), this.current);
    },
    change(value) {
      this.current = this.kind === "range" ? Number(value) : value;
      this.save();
      this.$emit("value", this.current);
    },
    async read(event) {
      const [file] = event.target.files;
      if (file) this.$emit("value", (await file.text()).slice(0, this.most));
    },
    enter(event) {
      if (event.shiftKey || this.lines) return;
      event.preventDefault();
      this.$emit("enter");
    },
  },
  template: `
    <div class="control" :class="kind">
      <label :for="name">{{ label }}<output v-if="kind === 'range'" :for="name">{{ current }}{{ unit }}</output></label>
      <textarea v-if="kind === 'textarea'" :id="name" dir="auto" :rows="rows" :value="current" :aria-describedby="hint ? name + '-hint' : null"
        @input="change($event.target.value)" @keydown.enter="enter"></textarea>
      <select v-else-if="kind === 'select'" :id="name" :value="current" @change="change($event.target.value)">
        <option v-for="[key, shown] in options" :key="key" :value="key">{{ shown }}</option>
      </select>
      <input v-else-if="kind === 'file'" :id="name" type="file" accept=".csv,.tsv,.jsonl,.ndjson,.txt" @change="read">
      <input v-else :id="name" :type="kind" :value="current" :min="least" :max="most" :step="step"
        :aria-valuetext="kind === 'range' ? current + (unit || '') : null" @input="change($event.target.value)" @keydown.enter="enter">
      <p v-if="hint" class="hint" :id="name + '-hint'">{{ hint }}</p>
    </div>`,
};
