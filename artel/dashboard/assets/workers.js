// What each worker does: now as a table and a picture, and over time as a heat map.
'use strict';

const parts = [['computing', 'computing', 'computing'], ['data', 'waiting for data', 'waiting_for_data'],
               ['waiting', 'waiting for others', 'waiting_for_workers'], ['wire', 'exchanging', 'on_the_wire']];

function bytes(count) {
  if (count == null) return '–';
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  while (count >= 1024 && unit < 4) { count /= 1024; ++unit; }
  return `${unit && count < 100 ? count.toFixed(1) : Math.round(count)} ${units[unit]}`;
}

const percent = share => share == null ? '–' : `${Math.round(100 * share)} %`;

function legend() {
  return el('div', {className: 'legend'}, ...parts.map(([kind, name]) => el('span', {}, el('i', {className: kind}), name)));
}

function bar(worker) {
  const box = el('div', {className: 'bar'});
  box.title = parts.map(([, name, key]) => `${name} ${percent(worker[key])}`).join(', ');
  for (const [kind, , key] of parts.slice(0, 3)) {
    const part = el('i', {className: kind});
    part.style.width = `${100 * (worker[key] ?? 0)}%`;
    box.append(part);
  }
  return box;
}

function workerTable(live) {
  const columns = ['who', 'mesh', 'host', 'doing', 'samples/s', 'time', 'exchanging', 'cores', 'memory', 'out', 'in', 'lanes', 'stale'];
  const workers = [...live.workers].sort((a, b) => (b.name === live.culprit) - (a.name === live.culprit));
  const served = workers.some(w => w.server), arranged = workers.some(w => w.mesh);
  const shown = columns.filter(c => (c !== 'stale' || served) && (c !== 'mesh' || arranged));
  const cells = w => ({
    who: w.name, mesh: w.mesh ?? '', host: w.host, doing: w.silent_seconds >= 2 ? `silent for ${Math.round(w.silent_seconds)} s` : w.doing,
    'samples/s': w.samples_per_second == null ? '–' : short(Math.round(w.samples_per_second)), time: w.server ? '' : bar(w),
    exchanging: percent(w.on_the_wire), cores: w.processor == null ? '–' : `${w.processor.toFixed(1)}${w.cores ? ' of ' + w.cores : ''}`,
    memory: bytes(w.memory_bytes), out: w.sent_per_second == null ? '–' : bytes(w.sent_per_second) + '/s',
    in: w.received_per_second == null ? '–' : bytes(w.received_per_second) + '/s', lanes: w.lanes || '–',
    stale: w.staleness == null ? '' : w.staleness.toFixed(1),
  });
  const numeric = new Set(['samples/s', 'exchanging', 'cores', 'memory', 'out', 'in', 'lanes', 'stale']);
  const className = c => numeric.has(c) ? 'number' : '';
  return el('table', {},
    el('thead', {}, el('tr', {}, ...shown.map(c => el('th', {className: className(c)}, c)))),
    el('tbody', {}, ...workers.map(w => {
      const values = cells(w);
      return el('tr', {className: w.name === live.culprit ? 'culprit' : ''}, ...shown.map(c => el('td', {className: className(c)}, values[c])));
    })));
}

// Workers grouped by host, or in a row by stage; the thicker a line, the more travels on it.
function mesh(live) {
  const space = 'http://www.w3.org/2000/svg';
  const svg = (tag, attributes, text) => {
    const node = document.createElementNS(space, tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    if (text != null) node.textContent = text;
    return node;
  };
  const workers = live.workers.filter(w => !w.server), servers = live.workers.filter(w => w.server);
  const hosts = [...new Set(live.workers.map(w => w.host))];
  const places = new Map();
  const most = Math.max(1, ...hosts.map(h => live.workers.filter(w => w.host === h).length));
  const step = 104, rowHeight = 112, width = Math.max(320, most * step + 30);
  const picture = svg('svg', {viewBox: `0 0 ${width} ${hosts.length * rowHeight + 10}`, class: 'mesh', role: 'img', 'aria-label': 'mesh of workers'});
  hosts.forEach((host, row) => {
    picture.append(svg('rect', {x: 6, y: row * rowHeight + 6, width: width - 12, height: rowHeight - 10, rx: 10, class: 'host'}));
    picture.append(svg('text', {x: 16, y: row * rowHeight + 22, class: 'host-name'}, host));
    live.workers.filter(w => w.host === host).forEach((w, i) => places.set(w.name, [i * step + step / 2 + 14, row * rowHeight + 56]));
  });
  const busiest = Math.max(1, ...workers.map(w => w.sent_per_second ?? 0));
  const link = (a, b, rate) => {
    const [x1, y1] = places.get(a.name), [x2, y2] = places.get(b.name);
    const bend = y1 === y2 ? Math.min(46, 14 + Math.abs(x2 - x1) / 8) : 0;
    const line = svg('path', {d: `M${x1} ${y1} Q${(x1 + x2) / 2} ${(y1 + y2) / 2 + bend} ${x2} ${y2}`, class: 'link', 'stroke-width': 1 + 5 * (rate ?? 0) / busiest});
    line.append(svg('title', {}, `${a.name} → ${b.name}: ${rate == null ? 'unknown' : bytes(rate) + '/s'}`));
    picture.append(line);
  };
  if (servers.length) workers.forEach(w => servers.forEach(s => link(w, s, (w.sent_per_second ?? 0) / servers.length)));
  else if (workers.length > 1) workers.forEach((w, i) => { if (i + 1 < workers.length || workers.length > 2) link(w, workers[(i + 1) % workers.length], w.sent_per_second); });
  for (const w of live.workers) {
    const [x, y] = places.get(w.name);
    const shape = w.server ? svg('rect', {x: x - 15, y: y - 15, width: 30, height: 30, rx: 5}) : svg('circle', {cx: x, cy: y, r: 17});
    shape.style.fill = w.silent_seconds >= 5 ? 'var(--bad)' : w.server ? 'var(--accent)'
      : w.computing == null ? 'var(--quiet)' : `color-mix(in srgb, var(--good) ${Math.round(100 * w.computing)}%, var(--bad))`;
    shape.append(svg('title', {}, `${w.name} on ${w.host}: computing ${percent(w.computing)}${w.mesh ? ', ' + w.mesh : ''}`));
    picture.append(shape, svg('text', {x, y: y + 32}, w.name + (w.stage >= 0 ? `, stage ${w.stage}` : '')));
  }
  return picture;
}

// A row for each worker, a column for each moment; the darker, the larger the share.
function heatMap(history, kind) {
  const names = Object.keys(history.workers), moments = history.at.length, row = 24;
  const canvas = el('canvas', {className: 'heat', width: Math.max(1, moments), height: names.length * row});
  canvas.style.height = `${names.length * row}px`;
  canvas.style.imageRendering = 'pixelated';
  const context = canvas.getContext('2d');
  const style = getComputedStyle(document.documentElement);
  context.fillStyle = style.getPropertyValue(kind === 'computing' ? '--good' : kind === 'data' ? '--data' : kind === 'waiting' ? '--bad' : '--wire');
  names.forEach((name, i) => history.workers[name][kind].forEach((share, moment) => {
    if (share == null) return;
    context.globalAlpha = 0.06 + 0.94 * Math.min(1, Math.max(0, share));
    context.fillRect(moment, i * row, 1, row - 3);
  }));
  canvas.addEventListener('mousemove', event => {
    const box = canvas.getBoundingClientRect();
    const moment = Math.min(moments - 1, Math.floor((event.clientX - box.left) / box.width * moments));
    const name = names[Math.min(names.length - 1, Math.floor((event.clientY - box.top) / row))];
    canvas.title = `${name}, step ${history.step[moment].toLocaleString('en')}: ${percent(history.workers[name][kind][moment])}`;
  });
  return el('div', {className: 'heat-rows'}, el('div', {}, ...names.map(name => el('span', {style: 'display:block'}, name))), canvas);
}

let heatKind = 'computing';

function drawWorkers(root, name, view, history, trace) {
  const live = view.live;
  if (!live) {
    root.replaceChildren(el('p', {className: 'quiet'}, `${name} has told nothing about its workers yet.`));
    return;
  }
  const running = view.status === 'running';
  const fine = live.diagnosis.startsWith('all is well');
  const says = running ? live.diagnosis : `${name}: ${view.status}${view.remark ? ' (' + view.remark + ')' : ''}. This is what was last seen.`;
  const progress = `step ${live.step.toLocaleString('en')}${live.steps > 0 && live.steps < 1e15 ? ' of ' + live.steps.toLocaleString('en') : ''}, ` +
    `${short(Math.round(live.samples_per_second))} samples/s`;
  const choice = el('select', {ariaLabel: 'What the heat map shows'}, ...parts.map(([kind, text]) => el('option', {value: kind, selected: kind === heatKind}, text)));
  choice.addEventListener('change', () => { heatKind = choice.value; drawWorkers(root, name, view, history, trace); });
  root.replaceChildren(
    el('div', {className: `card says ${running ? (fine ? 'fine' : '') : 'over'}`}, el('strong', {}, says), el('div', {className: 'quiet'}, progress)),
    el('div', {className: 'card wide-card'}, workerTable(live), legend()),
    stepCard(name, live, trace),
    el('div', {className: 'grid'},
      el('div', {className: 'card'}, el('h2', {}, 'Over time ', choice), history.at.length ? heatMap(history, heatKind) : el('p', {className: 'quiet'}, 'The first line comes after ten seconds.')),
      el('div', {className: 'card'}, el('h2', {}, 'Mesh'), mesh(live))));
}
