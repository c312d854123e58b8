// The page's tables, and the button of its colours.
(() => {
  document.documentElement.classList.add("js");
  colours.switchedBy(document.getElementById("theme"));

  const inOrder = new Intl.Collator(undefined, { numeric: true }).compare;
  const compare = (one, other) => {
    const [a, b] = [one.dataset.n, other.dataset.n];
    if (a !== undefined && b !== undefined) return a - b;
    if (!one.textContent !== !other.textContent) return one.textContent ? -1 : 1; // empty cells last
    return inOrder(one.textContent, other.textContent);
  };
  for (const box of document.querySelectorAll(".table")) {
    const table = box.querySelector("table");
    const headings = [...table.tHead.rows[0].cells];
    headings.forEach((heading, at) => {
      heading.querySelector("button").addEventListener("click", () => {
        const down = heading.getAttribute("aria-sort") === "ascending";
        for (const other of headings) other.removeAttribute("aria-sort");
        heading.setAttribute("aria-sort", down ? "descending" : "ascending");
        const rows = [...table.tBodies[0].rows];
        rows.sort((one, other) => (down ? -1 : 1) * compare(one.cells[at], other.cells[at]));
        table.tBodies[0].append(...rows);
      });
    });
    const copy = box.querySelector(".copy");
    copy.addEventListener("click", async () => {
      const lines = [...table.rows].map((row) =>
        [...row.cells].map((cell) => cell.textContent.replace(/\s+/g, " ").replace("\u2212", "-").trim()).join("\t"),
      );
      copy.textContent = (await copied(lines.join("\n"))) ? "Copied" : "Cannot copy here";
      setTimeout(() => { copy.textContent = "Copy"; }, 1500);
    });
  }

  async function copied(text) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      const area = document.createElement("textarea");
      area.value = text;
      document.body.append(area);
      area.select();
      const done = document.execCommand("copy");
      area.remove();
      return done;
    }
  }
})();
