// The page's texts, each with the panel that tells of its words.
(() => {
  const texts = JSON.parse(document.getElementById("data").textContent).texts;
  document.querySelectorAll(".text").forEach((article, at) => {
    words.browse(article.querySelector(".heat"), article.querySelector(".detail"), () => texts[at]);
  });
})();
