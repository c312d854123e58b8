// The page's colours: as the system has them, light or dark.
const colours = (() => {
  const root = document.documentElement;

  // A page that was opened from disk may not be allowed to remember anything.
  const remembered = (value) => {
    try {
      if (value !== undefined) localStorage.setItem("wordsens-colours", value);
      return localStorage.getItem("wordsens-colours");
    } catch {
      return null;
    }
  };
  const schemes = ["system", "light", "dark"];
  let scheme = schemes.includes(remembered()) ? remembered() : "system";
  const paint = () => {
    if (scheme === "system") delete root.dataset.theme;
    else root.dataset.theme = scheme;
  };
  paint();

  // The button shows the scheme, and goes on to the next.
  function switchedBy(button) {
    const name = () => {
      button.textContent = `Colours: ${scheme}`;
      button.setAttribute("aria-label", `Colours: ${scheme}. Press for the next of ${schemes.join(", ")}.`);
    };
    name();
    button.addEventListener("click", () => {
      scheme = schemes[(schemes.indexOf(scheme) + 1) % schemes.length];
      remembered(scheme);
      paint();
      name();
    });
  }

  return { switchedBy };
})();
