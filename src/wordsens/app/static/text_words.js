// The words of a text in their colours, and panels that tell of the word under the pointer and of one that is pinned.
export default {
  props: { text: Object, here: Number, label: String },
  data() {
    return { pinned: null };
  },
  computed: {
    known() {
      return this.text.pieces.filter((piece) => typeof piece !== "string");
    },
    // A text with other words is drawn anew, so that its spans and their listeners belong together.
    version() {
      return this.known.map((word) => word.row).join();
    },
  },
  watch: {
    text() {
      this.$nextTick(() => this.draw());
    },
    here() {
      this.$nextTick(() => this.goTo(this.here));
    },
  },
  mounted() {
    this.draw();
  },
  methods: {
    draw() {
      if (!this.known.length) return;
      if (this.drawn !== this.version) {
        this.drawn = this.version;
        this.pinned = null;
        this.browsed = words.browse(this.$refs.heat, this.$refs.panel, () => this.known, (at) => {
          this.at = at;
          this.$emit("pick", this.known[at].row);
        });
        this.goTo(this.here);
      } else this.browsed.again();
      this.tellPinned();
    },
    goTo(row) {
      const at = this.known.findIndex((word) => word.row === row);
      if (at >= 0) this.browsed.pin(at);
    },
    tellPinned() {
      const word = this.known.find((one) => one.row === this.pinned);
      if (word) words.tell(this.$refs.second, word, words.most(this.known));
    },
    pin() {
      const shown = this.$refs.heat.querySelector(".w.here");
      const at = [...this.$refs.heat.querySelectorAll(".w")].indexOf(shown);
      this.pinned = this.pinned === null ? this.known[at].row : null;
      this.$nextTick(() => this.tellPinned());
    },
  },
  template: `
    <div class="spread">
      <div>
        <p class="heat" ref="heat" :key="version" :dir="text.direction" role="group" :aria-label="label"
          ><template v-for="(piece, at) in text.pieces" :key="at"
          ><span v-if="typeof piece !== 'string'" class="w" :class="'s' + piece.level" role="button" tabindex="-1">{{ piece.text }}</span
          ><template v-else>{{ piece }}</template></template></p>
        <p class="scale" v-if="known.length"><span class="sr">Colours from </span>{{ text.ends[0] }}
          <span class="ramp" aria-hidden="true"><i v-for="level in 9" :key="level" :class="'s' + (level - 1)"></i></span>
          <span class="sr">to </span>{{ text.ends[1] }} <span>{{ text.measure }}</span></p>
        <p class="caption" v-if="text.note">{{ text.note }}</p>
        <slot></slot>
      </div>
      <div>
        <div class="detail" ref="panel" role="status" aria-live="polite"></div>
        <button type="button" class="plain pin" v-if="known.length" :aria-pressed="pinned !== null" @click="pin">
          {{ pinned === null ? "Pin this word" : "Unpin" }}</button>
        <div class="key"><dl>
          <dt>Attained</dt><dd>a push of the word’s vector that was found does this</dd>
          <dt>At most</dt><dd>proved, for some models: no push of this word does more</dd>
          <dt>Taken out</dt><dd>the word deleted</dd>
          <dt>Best real swap</dt><dd>the farthest of real words tried in its place</dd>
        </dl></div>
        <div class="detail second" ref="second" v-show="pinned !== null"></div>
      </div>
    </div>`,
};
