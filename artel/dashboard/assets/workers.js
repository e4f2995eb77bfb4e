// The activity of each worker: now as a table, and over time as a heat map.
'use strict';

// Kinds of time: name of the colour and of the row in the history, text, share of a worker's last seconds. The last one overlaps with
// the others. The wire's part of the waiting time is the wait of the worker that waits least.
const waitingForOthers = w => w.waiting_for_workers == null ? null : w.waiting_for_workers - (w.waiting_for_the_wire ?? 0);
const parts = [['computing', 'computing', w => w.computing], ['data', 'waiting for data', w => w.waiting_for_data],
               ['waiting', 'waiting for others', waitingForOthers], ['wire_wait', 'waiting for the wire', w => w.waiting_for_the_wire],
               ['wire', 'exchanging', w => w.on_the_wire]];

function bytes(count) {
  if (count == null) return '–';
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  while (count >= 1024 && unit < 4) { count /= 1024; ++unit; }
  return `${unit && count < 100 ? count.toFixed(1) : Math.round(count)} ${units[unit]}`;
}

const percent = share => share == null ? '–' : `${Math.round(100 * share)} %`;

function legend() {
  return el('div', {className: 'legend'}, ...parts.slice(0, 4).map(([kind, name]) => el('span', {}, el('i', {className: kind}), name)));
}

function bar(worker) {
  const box = el('div', {className: 'bar'});
  box.title = parts.map(([, name, share]) => `${name} ${percent(share(worker))}`).join(', ');
  for (const [kind, , share] of parts.slice(0, 4)) {
    const part = el('i', {className: kind});
    part.style.width = `${100 * (share(worker) ?? 0)}%`;
    box.append(part);
  }
  return box;
}

function workerTable(live) {
  const columns = ['who', 'mesh', 'host', 'doing', 'samples/s', 'time', 'exchanging', 'cores', 'memory', 'device', 'on device', 'copied', 'out', 'in', 'lanes', 'stale'];
  const workers = [...live.workers].sort((a, b) => (b.name === live.culprit) - (a.name === live.culprit));
  const served = workers.some(w => w.server), arranged = workers.some(w => w.mesh);
  const onDevice = workers.some(w => w.device_memory_bytes), ofDevice = new Set(['device', 'on device', 'copied']);
  const shown = columns.filter(c => (c !== 'stale' || served) && (c !== 'mesh' || arranged) && (onDevice || !ofDevice.has(c)));
  const cells = w => ({
    who: w.name, mesh: w.mesh ?? '', host: w.host, doing: w.silent_seconds >= 2 ? `silent for ${Math.round(w.silent_seconds)} s` : w.doing,
    'samples/s': w.samples_per_second == null ? '–' : short(Math.round(w.samples_per_second)), time: w.server ? '' : bar(w),
    exchanging: percent(w.on_the_wire), cores: w.processor == null ? '–' : `${w.processor.toFixed(1)}${w.cores ? ' of ' + w.cores : ''}`,
    memory: bytes(w.memory_bytes), device: percent(w.device), 'on device': w.device_memory_bytes ? bytes(w.device_memory_bytes) : '–',
    copied: w.device_copied_per_second == null ? '–' : bytes(w.device_copied_per_second) + '/s', out: w.sent_per_second == null ? '–' : bytes(w.sent_per_second) + '/s',
    in: w.received_per_second == null ? '–' : bytes(w.received_per_second) + '/s', lanes: w.lanes || '–',
    stale: w.staleness == null ? '' : w.staleness.toFixed(1),
  });
  const numeric = new Set(['samples/s', 'exchanging', 'cores', 'memory', 'device', 'on device', 'copied', 'out', 'in', 'lanes', 'stale']);
  const className = c => numeric.has(c) ? 'number' : '';
  return el('table', {},
    el('thead', {}, el('tr', {}, ...shown.map(c => el('th', {className: className(c)}, c)))),
    el('tbody', {}, ...workers.map(w => {
      const values = cells(w);
      return el('tr', {className: w.name === live.culprit ? 'culprit' : ''}, ...shown.map(c => el('td', {className: className(c)}, values[c])));
    })));
}

// One row per worker, one column per point in time. Darker means a larger share.
function heatMap(history, kind) {
  const names = Object.keys(history.workers), moments = history.at.length, row = 24;
  const canvas = el('canvas', {className: 'heat', width: Math.max(1, moments), height: names.length * row});
  canvas.style.height = `${names.length * row}px`;
  canvas.style.imageRendering = 'pixelated';
  const context = canvas.getContext('2d');
  const style = getComputedStyle(document.documentElement);
  context.fillStyle = style.getPropertyValue({computing: '--good', data: '--data', waiting: '--bad'}[kind] ?? '--wire');
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
  const ends = el('div', {className: 'step-axis'}, ...[0, moments - 1].map(at => el('span', {}, `step ${history.step[at].toLocaleString('en')}`)));
  return el('div', {className: 'heat-rows'}, el('div', {}, ...names.map(name => el('span', {style: 'display:block'}, name))), el('div', {}, canvas, ends));
}

let heatKind = 'computing';

// Redraws the contents but keeps the frame, so that an open selection is not lost.
function workersFrame(root) {
  if (!root.querySelector('#over-time')) {
    const choice = el('select', {ariaLabel: 'Quantity of the heat map'}, ...parts.map(([kind, text]) => el('option', {value: kind}, text)));
    choice.addEventListener('change', () => { heatKind = choice.value; drawTab().catch(report); });
    root.replaceChildren(el('div', {id: 'now'}),
      el('div', {className: 'grid'},
        el('div', {className: 'card'}, el('h2', {}, 'Over time ', choice), el('div', {id: 'over-time'})),
        el('div', {className: 'card'}, el('h2', {}, 'Mesh'), el('div', {id: 'mesh'}))));
  }
}

const milliseconds = seconds => `${(1000 * seconds).toPrecision(3)} ms`;

// Measured and forecast time of a step, where both are known.
function stepTimes(live) {
  if (!(live.seconds_per_step > 0 && live.forecast_seconds > 0)) return '';
  return `, ${milliseconds(live.seconds_per_step)} a step (forecast ${milliseconds(live.forecast_seconds)})`;
}

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
    `${short(Math.round(live.samples_per_second))} samples/s${stepTimes(live)}`;
  workersFrame(root);
  $('now').replaceChildren(
    el('div', {className: `card says ${running ? (fine ? 'fine' : '') : 'over'}`}, el('strong', {}, says), el('div', {className: 'quiet'}, progress)),
    el('div', {className: 'card wide-card'}, workerTable(live), legend()),
    stepCard(name, live, trace));
  $('over-time').replaceChildren(history.at.length ? heatMap(history, heatKind) : el('p', {className: 'quiet'}, 'No measurements yet.'));
  $('mesh').replaceChildren(meshPicture(live));
}
