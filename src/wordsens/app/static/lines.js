// Attention as lines between words, before and after; a slider goes from the one to the other.
const ROW = 22;
const LEAST = 0.02; // weights below it have no line

export default {
  props: { sentence: String, before: Object, title: String, words: Array, frames: Array, at: Array, slider: String },
  data() {
    return { step: 0 };
  },
  computed: {
    last() {
      return this.frames.length - 1;
    },
    percent() {
      return `${Math.round((100 * this.step) / this.last)} %`;
    },
    panels() {
      const now = { title: this.title, words: this.words, weights: this.frames[this.step] };
      return [this.before, now].map((one) => ({ ...one, height: ROW * one.words.length + 8, lines: this.lines(one.weights) }));
    },
  },
  watch: {
    frames() {
      this.play();
    },
  },
  mounted() {
    this.play();
  },
  beforeUnmount() {
    clearInterval(this.timer);
  },
  methods: {
    play() {
      clearInterval(this.timer);
      if (matchMedia("(prefers-reduced-motion: reduce)").matches) return this.go(this.last);
      this.step = 0;
      this.timer = setInterval(() => (this.step < this.last ? this.go(this.step + 1) : clearInterval(this.timer)), 150);
    },
    go(step) {
      this.step = Number(step);
    },
    lines(weights) {
      const found = weights.flatMap((row, from) => row.map((weight, to) => ({ weight, from, to })));
      return found.filter((one) => one.weight >= LEAST).map((one) => ({ ...one, turned: this.at.includes(one.to) }));
    },
    y: (at) => ROW * (at + 0.5) + 4,
    short: (word) => (word.length > 14 ? `${word.slice(0, 13)}…` : word),
  },
  template: `
    <div class="lines">
      <p class="answer" role="status">{{ sentence }}</p>
      <div class="control" v-if="last > 0">
        <label :for="slider + '-push'">{{ slider }}<output :for="slider + '-push'">{{ percent }}</output></label>
        <input type="range" class="push" :id="slider + '-push'" min="0" :max="last" step="1" :value="step"
          :aria-valuetext="percent" @input="go($event.target.value)">
      </div>
      <div class="panels" :class="{ both: last === 0 }">
        <figure v-for="(panel, side) in panels" :key="side">
          <figcaption><bdi>{{ panel.title }}</bdi></figcaption>
          <svg :viewBox="'0 0 320 ' + panel.height" role="img" :aria-label="'Attention, ' + panel.title">
            <line v-for="(one, n) in panel.lines" :key="n" :class="{ turned: one.turned }" x1="112" x2="208"
              :y1="y(one.from)" :y2="y(one.to)" :stroke-opacity="one.weight"><title>{{ panel.words[one.from] }} → {{ panel.words[one.to] }}: {{ one.weight.toFixed(2) }}</title></line>
            <template v-for="(word, n) in panel.words" :key="n">
              <text x="106" :y="y(n) + 4" text-anchor="end" :class="{ turned: at.includes(n) }">{{ short(word) }}</text>
              <text x="214" :y="y(n) + 4" :class="{ turned: at.includes(n) }">{{ short(word) }}</text>
            </template>
          </svg>
        </figure>
      </div>
    </div>`,
};
