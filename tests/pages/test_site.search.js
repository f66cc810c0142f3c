
new Promise((told) => {
  const box = document.querySelector("[data-md-component=search-query]");
  if (!box) { told(["no box"]); return; }
  const begun = Date.now();
  const look = () => {
    const found = [...document.querySelectorAll(".md-search-result__link")];
    const links = found.map((link) => new URL(link.href).pathname);
    if (links.length || Date.now() - begun > 30000) { told(links); return; }
    box.dispatchEvent(new KeyboardEvent("keyup", { bubbles: true }));
    setTimeout(look, 100);
  };
  box.focus();
  box.value = WORD;
  look();
})
