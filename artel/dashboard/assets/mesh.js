// A drawing of the workers: links between them, and the traffic of each.
'use strict';

const meshCell = {width: 136, height: 112};

function svg(tag, attributes, text) {
  const node = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  if (text != null) node.textContent = text;
  return node;
}

// Parses "data 1, stages 0 and 2, tensor 0" into one number per axis; 0 for a missing axis.
function coordinates(worker) {
  const at = axis => Number(worker.mesh?.match(new RegExp(`${axis} (\\d+)`))?.[1] ?? 0);
  return {data: at('data'), stage: at('stages?'), tensor: at('tensor')};
}

// Pairs of workers that follow one another along `axis` and agree in the other two.
function alongAxis(workers, axis) {
  const others = ['data', 'stage', 'tensor'].filter(each => each !== axis);
  const rows = new Map();
  for (const worker of workers) {
    const at = coordinates(worker), key = others.map(each => at[each]).join();
    if (!rows.has(key)) rows.set(key, []);
    rows.get(key).push({worker, at: at[axis]});
  }
  return [...rows.values()].flatMap(row => {
    row.sort((a, b) => a.at - b.at);
    return row.slice(1).map((each, i) => [row[i].worker, each.worker]);
  });
}

// The links between workers, as far as the strategy determines them: [[from, to], ...].
function linksOf(live) {
  const workers = live.workers.filter(w => !w.server), servers = live.workers.filter(w => w.server);
  if (servers.length) return workers.flatMap(w => servers.map(server => [w, server]));
  if (workers.some(w => w.mesh)) return ['stage', 'tensor', 'data'].flatMap(axis => alongAxis(workers, axis));
  if (live.strategy === 'coordinator') return workers.slice(1).map(w => [w, workers[0]]);
  if (live.strategy === 'tree') return workers.slice(1).map((w, i) => [w, workers[Math.floor(i / 2)]]);
  const next = workers.slice(1).map((w, i) => [workers[i], w]);
  return workers.length > 2 ? [...next, [workers[workers.length - 1], workers[0]]] : next;
}

// Boxes with the workers in them. In a mesh a box is a copy of the network, with its stages (or its parts of layers) from left to
// right; otherwise it is a host.
function boxesOf(live) {
  const boxes = new Map();
  const add = (title, worker) => {
    if (!boxes.has(title)) boxes.set(title, []);
    boxes.get(title).push(worker);
  };
  const arranged = live.workers.some(w => w.mesh);
  for (const worker of live.workers) add(arranged && !worker.server ? `copy ${coordinates(worker).data}` : worker.host, worker);
  const place = worker => { const at = coordinates(worker); return at.stage * 1000 + at.tensor; };
  if (arranged) for (const row of boxes.values()) row.sort((a, b) => place(a) - place(b));
  return [...boxes].sort(([a], [b]) => arranged ? a.localeCompare(b, 'en', {numeric: true}) : 0);
}

function meshPicture(live) {
  const boxes = boxesOf(live), places = new Map();
  const most = Math.max(1, ...boxes.map(([, row]) => row.length));
  const width = Math.max(320, most * meshCell.width + 12);
  const picture = svg('svg', {viewBox: `0 0 ${width} ${boxes.length * meshCell.height + 6}`, class: 'mesh', role: 'img', 'aria-label': 'mesh of workers'});
  picture.style.maxWidth = `${1.35 * width}px`;
  boxes.forEach(([title, row], i) => {
    picture.append(svg('rect', {x: 6, y: i * meshCell.height + 6, width: width - 12, height: meshCell.height - 8, rx: 10, class: 'host'}),
      svg('text', {x: 16, y: i * meshCell.height + 22, class: 'host-name'}, title));
    row.forEach((w, k) => places.set(w, [6 + (k + 0.5) * meshCell.width, i * meshCell.height + 48]));
  });
  const traffic = w => Math.max(w.sent_per_second ?? 0, w.received_per_second ?? 0);
  const busiest = Math.max(1, ...live.workers.map(traffic));
  for (const [a, b] of linksOf(live)) {
    const [x1, y1] = places.get(a), [x2, y2] = places.get(b);
    const bend = y1 === y2 && Math.abs(x2 - x1) > meshCell.width ? 34 : x1 === x2 && Math.abs(y2 - y1) > meshCell.height ? 40 : 0;
    const middle = [(x1 + x2) / 2 + (x1 === x2 ? bend : 0), (y1 + y2) / 2 - (y1 === y2 ? bend : 0)];
    const line = svg('path', {d: `M${x1} ${y1} Q${middle[0]} ${middle[1]} ${x2} ${y2}`, class: 'link', 'stroke-width': 1 + 5 * Math.min(traffic(a), traffic(b)) / busiest});
    line.append(svg('title', {}, `${a.name} and ${b.name}`));
    picture.append(line);
  }
  for (const [w, [x, y]] of places) picture.append(...workerOf(w, x, y));
  return picture;
}

function workerOf(w, x, y) {
  const rate = value => value == null ? '–' : bytes(value) + '/s';
  const shape = w.server ? svg('rect', {x: x - 15, y: y - 15, width: 30, height: 30, rx: 5}) : svg('circle', {cx: x, cy: y, r: 16});
  shape.style.fill = w.silent_seconds >= 5 ? 'var(--bad)' : w.server ? 'var(--accent)'
    : w.computing == null ? 'var(--quiet)' : `color-mix(in srgb, var(--good) ${Math.round(100 * w.computing)}%, var(--bad))`;
  shape.append(svg('title', {}, `${w.name} on ${w.host}: computing ${percent(w.computing)}${w.mesh ? ', ' + w.mesh : ''}; sends ${rate(w.sent_per_second)}, receives ${rate(w.received_per_second)}`));
  const within = (w.mesh ?? '').replace(/data \d+(, )?/, '');
  return [shape, svg('text', {x, y: y + 31}, w.name), svg('text', {x, y: y + 43, class: 'quiet'}, within),
          svg('text', {x, y: y + 55, class: 'quiet'}, `↑ ${rate(w.sent_per_second)} ↓ ${rate(w.received_per_second)}`)];
}
