// The button that changes the page's colours.
export default {
  mounted() {
    colours.switchedBy(this.$el);
  },
  template: `<button type="button" id="theme" class="plain">Colours</button>`,
};
