// The words of a text in their colours. A word is chosen by a click or with the keyboard.
export default {
  props: { pieces: Array, here: Number, title: String },
  computed: {
    // The one word that Tab reaches: from there arrow keys go on.
    stop() {
      const rows = this.pieces.filter((piece) => typeof piece !== "string").map((word) => word.row);
      return rows.includes(this.here) ? this.here : rows[0];
    },
  },
  methods: {
    // 1 for the word with the largest value, towards 0 for the last one.
    rank(word) {
      const values = this.pieces.filter((piece) => typeof piece !== "string").map((piece) => piece.value);
      return 1 - values.filter((value) => value > word.value).length / values.length;
    },
    move(event) {
      const words = [...this.$el.querySelectorAll(".w")];
      const ahead = getComputedStyle(event.currentTarget).direction === "rtl" ? -1 : 1;
      const steps = { ArrowRight: ahead, ArrowLeft: -ahead, ArrowDown: 10, ArrowUp: -10, Home: -Infinity, End: Infinity };
      if (!(event.key in steps)) return;
      event.preventDefault();
      const at = words.indexOf(document.activeElement) + steps[event.key];
      words[Math.min(words.length - 1, Math.max(0, at))].focus();
    },
  },
  template: `
    <section class="reader"><h3>{{ title }}</h3><p class="heat" dir="auto" role="group" :aria-label="title" @keydown="move"
      ><template v-for="(piece, at) in pieces" :key="at"
      ><span v-if="typeof piece !== 'string'" :class="['w', 's' + piece.level, { here: piece.row === here, unknown: piece.unknown }]"
        role="button" :aria-pressed="piece.row === here" :tabindex="piece.row === stop ? 0 : -1" :title="piece.value.toFixed(2)" :style="{ '--rank': rank(piece) }"
        @click="$emit('pick', piece.row)" @focus="$emit('pick', piece.row)">{{ piece.text }}</span
      ><template v-else>{{ piece }}</template></template></p></section>`,
};
