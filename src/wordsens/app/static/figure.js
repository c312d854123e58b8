// A figure of the report, drawn again whenever its data change.
export default {
  props: { figure: Object },
  data() {
    return { version: 0 };
  },
  watch: {
    figure() {
      this.version += 1;
      this.$nextTick(() => this.draw());
    },
  },
  mounted() {
    this.draw();
  },
  methods: {
    draw() {
      const figure = JSON.parse(JSON.stringify(this.figure));
      plots.mount(this.$refs.frame, figure, [figure]);
    },
  },
  template: `
    <figure class="figure" ref="frame" :key="version">
      <figcaption><h3>{{ figure.title }}</h3></figcaption>
      <div class="axes" v-if="figure.x.log !== null || figure.y.log !== null">
        <button v-for="axis in ['x', 'y'].filter((one) => figure[one].log !== null)" :key="axis" type="button" class="plain"
          :data-axis="axis" :aria-pressed="figure[axis].log ? 'true' : 'false'">log {{ axis }}</button>
      </div>
      <div class="panels"></div>
      <ul class="legend">
        <li v-for="curve in figure.legend" :key="curve.name"><button type="button" class="plain" :class="'c' + curve.colour"
          aria-pressed="true" :data-curve="curve.name" :data-shape="curve.shape" :data-hollow="curve.hollow ? '' : null"><bdi>{{ curve.name }}</bdi></button></li>
      </ul>
      <p class="caption">{{ figure.caption }}</p>
    </figure>`,
};
