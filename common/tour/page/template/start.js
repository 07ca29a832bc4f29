// SPDX-License-Identifier: MIT
// Brings the page to life: diffs when they are opened, players when they come near, and the two layouts.

const players = new Map();  // by chapter

function start(article) {
  const data = JSON.parse(document.getElementById("data-" + article.id).textContent);
  showDiffs(article, data.diff);
  if (data.player) players.set(article.id, new Player(article.querySelector(".player"), data.player));
}

const near = new IntersectionObserver((entries) => {
  for (const entry of entries.filter((each) => each.isIntersecting)) {
    near.unobserve(entry.target);
    start(entry.target);
  }
}, {rootMargin: "800px"});
document.querySelectorAll("article.chapter").forEach((article) => near.observe(article));
showSwizzle(document.getElementById("swizzle"));
showScales(document.getElementById("scales"));
