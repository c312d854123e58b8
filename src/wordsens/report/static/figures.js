// The page's figures, each from its data; those of one title share their axes.
(() => {
  const figures = JSON.parse(document.getElementById("data").textContent).figures;
  document.querySelectorAll(".figure").forEach((frame, index) => {
    const figure = figures[index];
    plots.mount(frame, figure, figures.filter((other) => other.title === figure.title));
  });
  performance.mark("wordsens-ready");
})();
