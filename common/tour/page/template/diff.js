// SPDX-License-Identifier: MIT
// A chapter's diff: files side by side, made when a file is opened.

function diffRow(kind, cells) {
  const row = document.createElement("div");
  row.className = "row " + kind;
  for (const [name, text] of cells) {
    const cell = document.createElement("div");
    cell.className = name;
    cell.textContent = text;
    row.append(cell);
  }
  return row;
}

function diffOf(file) {
  const table = document.createElement("div");
  table.className = "diff";
  for (const [oldFirst, newFirst, rows] of file.hunks) {
    const head = document.createElement("div");
    head.className = "hunk";
    head.textContent = `line ${oldFirst} there, line ${newFirst} here`;
    table.append(head);
    let before = oldFirst, after = newFirst;
    for (const row of rows) {
      if (row.length === 1) {
        table.append(diffRow("same", [["at", before++], ["", row[0]], ["at", after++], ["", row[0]]]));
        continue;
      }
      const [old, now] = row;
      table.append(diffRow("changed", [
        [old === null ? "at gap-at" : "at", old === null ? "" : before++], [old === null ? "gap" : "old", old ?? ""],
        [now === null ? "at gap-at" : "at", now === null ? "" : after++], [now === null ? "gap" : "new", now ?? ""],
      ]));
    }
  }
  return table;
}

function showDiffs(article, files) {
  article.querySelectorAll("details[data-file]").forEach((details) => {
    details.addEventListener("toggle", () => {
      if (details.open && !details.querySelector(".diff")) details.append(diffOf(files[Number(details.dataset.file)]));
    });
  });
}
