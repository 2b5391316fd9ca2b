// What a reader of this page would miss, as lists: of the part that `selector` names.
(selector) => {
  const parts = [...document.querySelectorAll(selector)];
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });

  // A colour of CSS as red, green, blue and opacity, each 0 to 1.
  function rgba(colour) {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data].map((v) => v / 255);
  }
  function over([r, g, b, a], [r0, g0, b0]) {
    return [r * a + r0 * (1 - a), g * a + g0 * (1 - a), b * a + b0 * (1 - a), 1];
  }
  // What lies behind the text of an element: backgrounds from the page up to it.
  function background(element) {
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    const below = element.parentElement ? background(element.parentElement) : dark ? [0, 0, 0, 1] : [1, 1, 1, 1];
    return over(rgba(getComputedStyle(element).backgroundColor), below);
  }
  function opacity(element) {
    return element ? getComputedStyle(element).opacity * opacity(element.parentElement) : 1;
  }
  // Relative luminance and contrast: Web Content Accessibility Guidelines 2.2.
  function luminance(colour) {
    const [r, g, b] = colour.map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  }
  function contrast(element) {
    const style = getComputedStyle(element), behind = background(element);
    const [r, g, b, a] = rgba(element instanceof SVGElement ? style.fill : style.color);
    const [x, y] = [luminance(over([r, g, b, a * opacity(element)], behind)), luminance(behind)];
    return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
  }
  function shown(element) {
    return element.checkVisibility() && element.getClientRects().length && !element.closest("details:not([open]) > :not(summary)");
  }
  function textsOf(part) {
    const walker = document.createTreeWalker(part, NodeFilter.SHOW_TEXT), elements = new Set();
    while (walker.nextNode())
      if (/[\p{L}\p{N}]/u.test(walker.currentNode.data)) elements.add(walker.currentNode.parentElement);
    return [...elements].filter((e) => shown(e) && !e.closest("style, script, title"));
  }
  const texts = parts.flatMap(textsOf);
  const pictures = parts.flatMap((p) => [...p.querySelectorAll("img, svg")]).filter(shown);
  const sizes = pictures.map((p) => p.getBoundingClientRect());
  return {
    texts: texts.length,
    pictures: pictures.length,
    empty: sizes.filter((s) => s.width < 16 || s.height < 16).length,
    broken: pictures.filter((p) => p.tagName === "IMG" && !p.naturalWidth).map((p) => p.src.slice(0, 80)),
    errors: document.querySelectorAll('[data-mime-type="application/vnd.jupyter.stderr"]').length,
    overflow: document.documentElement.scrollWidth - innerWidth,
    faint: texts.map((e) => [contrast(e).toFixed(2), e.textContent.trim().slice(0, 40)]).filter(([c]) => c < 4.5),
  };
}
