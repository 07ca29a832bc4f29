// SPDX-License-Identifier: MIT
// The player of a chapter's warps: lanes on the axis of issue order, stepped event by event.

const KINDS = ["other", "load", "mma", "wait", "epilogue"];
const WORDS = {load: "Load", mma: "Multiply", wait: "Wait", epilogue: "Store", other: "Other"};
const VERBS = {load: "loads", mma: "multiplies", wait: "waits", epilogue: "stores", other: "does other work"};
const HEAD_ROW = 24, WARP_ROW = 15, BARRIER_ROW = 13, AXIS = 26;
const grouped = (number) => String(number).replace(/\B(?=(\d{3})+$)/g, "\u202f");
const escaped = (text) => text.replace(/[&<>]/g, (c) => ({"&": "&amp;", "<": "&lt;", ">": "&gt;"})[c]);

// Events of all warps in the order in which they begin: the steps of the player.
function stepsOf(data) {
  const steps = [];
  data.blocks.forEach((block, b) => block.warps.forEach((warp, w) => warp.events.forEach((event) => {
    const [kind, begin, length, instructions, waits, place, barrier, phase] = event;
    steps.push({b, w, kind, begin, end: begin + length, instructions, waits, place, barrier, phase});
  })));
  return steps.sort((one, other) => one.begin - other.begin || one.b - other.b || one.w - other.w);
}

// Rows from top to bottom, each with its place and height in CSS pixels.
function rowsOf(data) {
  const rows = [];
  let y = 4;
  const add = (row, height) => {
    rows.push({...row, y, height});
    y += height;
  };
  data.blocks.forEach((block, b) => {
    add({what: "head", text: block.name}, HEAD_ROW);
    block.warps.forEach((warp, w) => add({what: "warp", b, w, text: warp.name + (warp.role ? " · " + warp.role : "")}, WARP_ROW));
    block.barriers.forEach((barrier, i) => add({what: "barrier", b, i, text: barrier.name}, BARRIER_ROW));
  });
  return {rows, height: y + AXIS};
}

class Player {
  constructor(root, data) {
    this.root = root;
    this.data = data;
    this.steps = stepsOf(data);
    this.layout = rowsOf(data);
    this.total = Math.max(...this.steps.map((step) => step.end), 1);
    this.zoom = 1;
    this.timer = 0;
    this.canvas = root.querySelector("canvas");
    this.slider = root.querySelector("input");
    this.slider.max = this.steps.length - 1;
    this.listen();
    this.go(this.steps.length - 1);
  }

  listen() {
    const acts = {
      first: () => this.go(0), back: () => this.go(this.at - 1), on: () => this.go(this.at + 1),
      last: () => this.go(this.steps.length - 1), play: () => this.play(),
      closer: () => this.scale(2), wider: () => this.scale(0.5),
    };
    const keys = {
      ArrowLeft: "back", ArrowRight: "on", Home: "first", End: "last", "+": "closer", "=": "closer", "-": "wider",
    };
    this.root.addEventListener("click", (event) => {
      const button = event.target.closest("button[data-act]");
      if (!button) return;
      if (button.dataset.act !== "play") this.stop();
      acts[button.dataset.act]();
    });
    this.root.addEventListener("keydown", (event) => {
      const act = keys[event.key];
      if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      this.stop();
      acts[act]();
    });
    this.slider.addEventListener("input", () => {
      this.stop();
      this.go(Number(this.slider.value));
    });
    this.canvas.addEventListener("click", (event) => this.choose(event.offsetX, event.offsetY));
    new ResizeObserver(() => this.draw()).observe(this.canvas.parentElement);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  go(step) {
    this.at = Math.max(0, Math.min(this.steps.length - 1, step));
    this.slider.value = this.at;
    this.tell();
    this.draw();
  }

  play() {
    if (this.timer) return this.stop();
    if (this.at === this.steps.length - 1) this.go(0);
    const stride = Math.max(1, Math.round(this.steps.length / 400));
    this.root.querySelector("[data-act=play]").textContent = "Pause";
    this.timer = setInterval(() => {
      this.go(this.at + stride);
      if (this.at === this.steps.length - 1) this.stop();
    }, 60);
  }

  stop() {
    clearInterval(this.timer);
    this.timer = 0;
    this.root.querySelector("[data-act=play]").textContent = "Play";
  }

  scale(factor) {
    this.zoom = Math.max(1, Math.min(256, this.zoom * factor));
    this.draw();
  }

  // The part of the axis that is seen: around the step, inside the whole.
  span() {
    const length = this.total / this.zoom;
    const begin = Math.max(0, Math.min(this.total - length, this.steps[this.at].begin - length / 2));
    return {begin, length};
  }

  gutter() {
    return this.canvas.clientWidth < 560 ? 92 : 132;
  }

  choose(x, y) {
    const {begin, length} = this.span();
    const left = this.gutter();
    if (x < left) return;
    const scale = length / (this.canvas.clientWidth - left - 8);
    const time = begin + (x - left) * scale;
    const row = this.layout.rows.find((each) => y >= each.y && y < each.y + each.height);
    let found = -1;
    this.steps.forEach((step, i) => {
      const here = !row || row.what !== "warp" || (step.b === row.b && step.w === row.w);
      if (here && step.begin <= time + 2 * scale) found = i;
    });
    this.stop();
    if (found >= 0) this.go(found);
  }

  // In words: what the step is, and what has been counted up to it.
  tell() {
    const step = this.steps[this.at], block = this.data.blocks[step.b], warp = block.warps[step.w];
    const kind = KINDS[step.kind], [place, code, ptx] = this.data.places[step.place];
    let what = `<strong>${VERBS[kind]}</strong>`;
    if (step.barrier >= 0) {
      what += ` at <code>${escaped(block.barriers[step.barrier].name)}</code>`;
      what += step.phase >= 0 ? ` for the end of phase ${step.phase}` : " for the phase before the first";
    }
    if (kind === "wait" && step.waits) what += `, while the others issue ${grouped(step.end - step.begin - 1)} instructions`;
    if (kind === "wait" && !step.waits) what += " no longer than the instruction itself";
    if (kind !== "wait") what += `: ${grouped(step.instructions)} instruction${step.instructions === 1 ? "" : "s"}`;
    this.root.querySelector(".now").innerHTML =
      `Step ${grouped(this.at + 1)} of ${grouped(this.steps.length)}, at issue ${grouped(step.begin)}. ` +
      `${escaped(block.name)}, ${escaped(warp.name)}${warp.role ? ` (${escaped(warp.role)})` : ""} ${what}.<br>` +
      [place, code, ptx].filter(Boolean).map((text) => `<code>${escaped(text)}</code>`).join(" ");
    this.count();
  }

  count() {
    const counts = KINDS.map(() => ({events: 0, instructions: 0, waits: 0}));
    for (const step of this.steps.slice(0, this.at + 1)) {
      counts[step.kind].events += 1;
      counts[step.kind].instructions += step.instructions;
      counts[step.kind].waits += step.waits;
    }
    const sum = {events: 0, instructions: 0, waits: 0};
    const cells = this.root.querySelectorAll(".counts [data-kind]");
    counts.forEach((count, kind) => {
      for (const what of Object.keys(sum)) sum[what] += count[what];
      const row = [...cells].find((each) => each.dataset.kind === KINDS[kind]);
      Object.keys(sum).forEach((what, i) => { row.cells[i + 1].textContent = grouped(count[what]); });
    });
    const foot = this.root.querySelector(".counts tfoot tr");
    Object.keys(sum).forEach((what, i) => { foot.cells[i + 1].textContent = grouped(sum[what]); });
    this.root.querySelector(".verdict").textContent = this.verdict(sum);
  }

  verdict(sum) {
    const printed = this.data.printed, last = this.at === this.steps.length - 1;
    const said = `${grouped(printed.instructions)} instructions and ${grouped(printed.waits)} waits`;
    if (!this.data.complete) return `The emulator printed ${said} for the kernel; shown here are ${this.data.blocks.length} of its blocks.`;
    if (!last) return `The emulator printed ${said} for the kernel.`;
    const equal = sum.instructions === printed.instructions && sum.waits === printed.waits;
    return `The emulator printed ${said} for the kernel: ${equal ? "the same as here" : "not what is here"}.`;
  }

  draw() {
    const width = this.canvas.clientWidth, height = this.layout.height, ratio = devicePixelRatio || 1;
    if (!width) return;
    this.canvas.style.height = height + "px";
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    const pen = this.canvas.getContext("2d"), style = getComputedStyle(this.root);
    const colour = (name) => style.getPropertyValue("--" + name).trim();
    pen.scale(ratio, ratio);
    const left = this.gutter(), {begin, length} = this.span();
    const view = {pen, colour, left, right: width - 8, begin, length, x: (t) => left + (t - begin) / length * (width - 8 - left)};
    for (const row of this.layout.rows) this.drawLabel(view, row);
    pen.save();
    pen.beginPath();
    pen.rect(left, 0, width - 8 - left, height);
    pen.clip();
    this.drawEvents(view);
    this.drawPhases(view);
    this.drawHead(view, height);
    pen.restore();
    this.drawAxis(view, height);
  }

  drawLabel({pen, colour, left}, row) {
    const step = this.steps[this.at];
    const here = (row.what === "warp" && row.b === step.b && row.w === step.w) ||
      (row.what === "barrier" && row.b === step.b && row.i === step.barrier);
    pen.font = `${row.what === "head" || here ? "600 " : ""}${row.what === "barrier" ? 10 : 11}px system-ui, "DejaVu Sans", sans-serif`;
    pen.fillStyle = colour(row.what === "head" || here ? "ink" : "quiet");
    pen.textBaseline = "middle";
    pen.textAlign = row.what === "head" ? "left" : "right";
    const text = left < 100 ? row.text.replace("warp ", "") : row.text;
    pen.fillText(text, row.what === "head" ? 10 : left - 8, row.y + row.height / 2, left - 12);
  }

  drawEvents({pen, colour, x, begin, length}) {
    const rows = new Map(this.layout.rows.filter((row) => row.what === "warp").map((row) => [row.b + ":" + row.w, row]));
    const colours = KINDS.map(colour);
    for (const kinds of [[0], [3], [1, 2, 4]]) {
      this.steps.forEach((step, i) => {
        if (!kinds.includes(step.kind) || step.end < begin || step.begin > begin + length) return;
        const row = rows.get(step.b + ":" + step.w), from = x(step.begin);
        const least = kinds.length > 1 ? 2.5 : 0.5, inset = step.kind === 0 ? 6 : 2;
        pen.globalAlpha = i <= this.at ? 1 : 0.2;
        pen.fillStyle = colours[step.kind];
        pen.fillRect(from, row.y + inset, Math.max(least, x(step.end) - from), row.height - 2 * inset);
      });
    }
    pen.globalAlpha = 1;
  }

  drawPhases({pen, colour, x, begin, length}) {
    const step = this.steps[this.at];
    for (const row of this.layout.rows.filter((each) => each.what === "barrier")) {
      for (const [phase, from, to] of this.data.blocks[row.b].barriers[row.i].phases) {
        if (to < begin || from > begin + length) continue;
        const a = x(from), wide = Math.max(1, x(to) - a - 1);
        const asked = step.b === row.b && step.barrier === row.i && step.phase === phase;
        pen.globalAlpha = to <= step.begin || asked ? 1 : 0.45;
        pen.fillStyle = colour(phase % 2 ? "odd" : "even");
        pen.fillRect(a, row.y + 2, wide, row.height - 4);
        if (asked) {
          pen.strokeStyle = colour("head");
          pen.lineWidth = 1.5;
          pen.strokeRect(a + 0.75, row.y + 1.5, Math.max(1, wide - 1.5), row.height - 3);
        }
        const shown = Math.min(x(begin + length), a + wide) - Math.max(x(begin), a);
        if (shown < 14) continue;
        pen.fillStyle = colour("bar-ink");
        pen.font = '9px system-ui, "DejaVu Sans", sans-serif';
        pen.textAlign = "left";
        pen.fillText(shown > 60 ? "phase " + phase : String(phase), Math.max(x(begin), a) + 4, row.y + row.height / 2 + 0.5);
      }
    }
    pen.globalAlpha = 1;
  }

  drawHead({pen, colour, x}, height) {
    const at = Math.round(x(this.steps[this.at].begin)) + 0.5;
    pen.strokeStyle = colour("head");
    pen.lineWidth = 1.5;
    pen.beginPath();
    pen.moveTo(at, 2);
    pen.lineTo(at, height - AXIS + 4);
    pen.stroke();
  }

  drawAxis({pen, colour, left, right, x, begin, length}, height) {
    const y = height - AXIS + 6, about = length / Math.max(2, (right - left) / 110);
    const power = 10 ** Math.floor(Math.log10(about));
    const tick = Math.max(1, [1, 2, 5, 10].map((n) => n * power).find((n) => n >= about));
    pen.font = '10px system-ui, "DejaVu Sans", sans-serif';
    pen.strokeStyle = colour("line");
    pen.fillStyle = colour("quiet");
    pen.lineWidth = 1;
    pen.textAlign = "right";
    pen.fillText("issue", left - 8, y + 9);
    pen.beginPath();
    pen.moveTo(left, y + 0.5);
    pen.lineTo(right, y + 0.5);
    for (let t = Math.ceil(begin / tick) * tick; t <= begin + length; t += tick) {
      const at = x(t);
      pen.moveTo(at, y);
      pen.lineTo(at, y + 4);
      const half = pen.measureText(grouped(t)).width / 2;
      pen.textAlign = at - half < left ? "left" : at + half > right ? "right" : "center";
      pen.fillText(grouped(t), at, y + 11);
    }
    pen.stroke();
  }
}
