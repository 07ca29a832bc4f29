// SPDX-License-Identifier: MIT
// The two layouts: where a unit of 16 bytes lies under TMA's 128-byte swizzle, and where a scale lies in its atom.

const hex = (number, digits = 3) => "0x" + number.toString(16).padStart(digits, "0");
const swizzled = (row, unit) => row * 128 + (unit ^ (row % 8)) * 16;
// The byte of a row's scale, in a matrix with that many blocks along K: atoms along K are neighbours.
const scaleAt = (row, block, blocks) => (Math.floor(row / 128) * Math.ceil(blocks / 4) + Math.floor(block / 4)) * 512 +
  row % 32 * 16 + Math.floor(row / 32) % 4 * 4 + block % 4;

// A grid of buttons with one stop for Tab, in which arrow keys move.
class Grid {
  constructor(root, columns, choose) {
    this.root = root;
    this.columns = columns;
    this.cells = [];
    root.addEventListener("keydown", (event) => this.move(event));
    root.addEventListener("focusin", (event) => {
      const cell = this.cells.indexOf(event.target);
      if (cell >= 0) choose(cell);
    });
    root.addEventListener("click", (event) => {
      const cell = this.cells.indexOf(event.target);
      if (cell >= 0) choose(cell);
    });
  }

  label(text, name = "") {
    const label = document.createElement("span");
    label.textContent = text;
    label.className = name;
    label.setAttribute("aria-hidden", "true");
    this.root.append(label);
  }

  cell(text, said, hue, name = "") {
    const cell = document.createElement("button");
    cell.type = "button";
    cell.textContent = text;
    cell.className = name;
    cell.setAttribute("aria-label", said);
    cell.style.setProperty("--hue", hue);
    this.root.append(cell);
    this.cells.push(cell);
  }

  press(index) {
    this.cells.forEach((cell, i) => {
      cell.setAttribute("aria-pressed", i === index);
      cell.tabIndex = i === index ? 0 : -1;
    });
  }

  move(event) {
    const by = {ArrowLeft: -1, ArrowRight: 1, ArrowUp: -this.columns, ArrowDown: this.columns}[event.key];
    const to = this.cells.indexOf(event.target) + by;
    if (!by || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    if (this.cells[to]) this.cells[to].focus();
  }
}

function showSwizzle(root) {
  const answer = root.querySelector(".answer"), list = root.querySelector(".elements");
  const choose = (row, unit) => {
    const at = swizzled(row, unit);
    tile.press(row * 8 + unit);
    memory.press(at / 16);
    answer.textContent = `Row ${row}, unit ${unit} (k ${8 * unit} to ${8 * unit + 7}) lies at byte ${hex(at)} (${at}): ` +
      `unit ${unit} xor ${row} = ${unit ^ row} of line ${row}. Without the swizzle it would lie at ${hex(row * 128 + unit * 16)}.`;
    list.replaceChildren(...Array.from({length: 8}, (_, i) => {
      const item = document.createElement("li");
      item.textContent = `k ${8 * unit + i}: ${hex(at + 2 * i)}`;
      return item;
    }));
  };
  const tile = new Grid(root.querySelector("[data-grid=tile]"), 8, (cell) => choose(cell >> 3, cell & 7));
  const memory = new Grid(root.querySelector("[data-grid=memory]"), 8, (cell) => choose(cell >> 3, (cell & 7) ^ (cell >> 3)));
  for (const [grid, first] of [[tile, "row"], [memory, "byte"]]) {
    grid.label(first);
    for (let i = 0; i < 8; ++i) grid.label(grid === tile ? i : 16 * i, "top-line");
    for (let row = 0; row < 8; ++row) {
      grid.label(grid === tile ? row : hex(row * 128));
      for (let i = 0; i < 8; ++i) {
        const unit = grid === tile ? i : i ^ row;
        grid.cell(`${row}·${unit}`, `row ${row}, unit ${unit}`, unit * 45);
      }
    }
  }
  choose(3, 5);
}

function showScales(root) {
  const answer = root.querySelector(".answer");
  const [row, block, blocks] = ["row", "block", "blocks"].map((name) => root.querySelector("#scale-" + name));
  const whole = (input) => Math.max(Number(input.min), Math.min(Number(input.max), Math.floor(Number(input.value)) || 0));
  const tell = () => {
    const r = whole(row), all = whole(blocks), b = Math.min(whole(block), Math.ceil(all / 4) * 4 - 1);
    const at = scaleAt(r, b, all), inside = at % 512;
    grid.press(inside);
    answer.textContent = `The scale of row ${r} and block ${b} lies at byte ${hex(inside)} (${inside}) of atom ${(at - inside) / 512}: ` +
      `16 · ${r % 32} + 4 · ${Math.floor(r / 32) % 4} + ${b % 4}. In the matrix that is byte ${hex(at)} (${at}).`;
  };
  const grid = new Grid(root.querySelector("[data-grid=scales]"), 16, (cell) => {
    row.value = Math.floor(whole(row) / 128) * 128 + Math.floor(cell / 4) % 4 * 32 + Math.floor(cell / 16);
    block.value = Math.floor(whole(block) / 4) * 4 + cell % 4;
    tell();
  });
  grid.label("byte");
  for (let i = 0; i < 16; ++i) grid.label(i, "top-line");
  for (let line = 0; line < 32; ++line) {
    grid.label(hex(line * 16));
    for (let i = 0; i < 16; ++i) {
      const r = Math.floor(i / 4) * 32 + line;
      grid.cell(`${r}·${i % 4}`, `row ${r}, block ${i % 4}`, [212, 160, 35, 280][Math.floor(i / 4)], i % 4 ? "" : "word");
    }
  }
  for (const input of [row, block, blocks]) input.addEventListener("input", tell);
  tell();
}
