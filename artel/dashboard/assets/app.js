// The page: the list of runs, the views, and live updates.
'use strict';

function el(tag, properties, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === 'style') node.style.cssText = value;
    else node[name] = value;
  }
  node.append(...children.filter(child => child != null).map(child => child instanceof Node ? child : String(child)));
  return node;
}

const $ = id => document.getElementById(id);
const query = values => new URLSearchParams(values).toString();

async function ask(path) {
  const answer = await fetch(path);
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  return answer.json();
}

const state = {
  runs: [], shown: new Map(),  // name -> {name, colour, series, events}
  current: null, tab: 'curves', sort: {key: 'begun', down: true}, filter: '', chosen: false,
  columns: [], values: new Map(),  // settings and metrics that the user wants to see; key -> {run: value}
};
const pointsWanted = 1000, mostShownAtFirst = 8;

const charts = new Charts($('charts'), {onRange: range => setRange(range)});

// ---- the table of runs

const columns = [
  {key: 'name', title: 'run', text: r => r.name},
  {key: 'step', title: 'step', number: true, text: r => r.step.toLocaleString('en')},
  {key: 'loss', title: 'loss', number: true, text: r => short(r.loss)},
  {key: 'metric', title: 'result', number: true, text: r => short(r.metric)},
  {key: 'begun', title: 'begun', number: true, text: r => r.begun ? when(r.begun) : ''},
];

function when(seconds) {
  const age = Date.now() / 1000 - seconds;
  if (age < 90) return 'now';
  if (age < 5400) return `${Math.round(age / 60)} min`;
  if (age < 129600) return `${Math.round(age / 3600)} h`;
  return `${Math.round(age / 86400)} d`;
}

// A column of the table: a built-in property, or any setting or metric of a run.
function valueOf(run, key) {
  if (key === 'result') return run.metric;
  return key in run ? run[key] : state.values.get(key)?.[run.name];
}

const conditionOf = word => word.match(/^([^\s<>=]+)(<=|>=|<|>|=)(.+)$/);
const wordsOfFilter = () => state.filter.split(/\s+/).filter(Boolean);

async function loadValues() {
  const keys = new Set(state.columns);
  for (const word of wordsOfFilter()) {
    const key = conditionOf(word)?.[1];
    if (key && key !== 'result' && !state.runs.some(run => key in run)) keys.add(key);
  }
  const answers = await Promise.all([...keys].map(key => ask('api/values?' + query({key}))));
  for (const {key, values} of answers) state.values.set(key, values);
}

async function addColumn(key) {
  if (!key || state.columns.includes(key) || columns.some(column => column.key === key)) return;
  state.columns.push(key);
  await loadValues();
  drawRuns();
}

function removeColumn(key) {
  state.columns = state.columns.filter(each => each !== key);
  if (state.sort.key === key) state.sort = {key: 'begun', down: true};
  drawRuns();
}

// Names to choose from: settings of the current run, and drawn metrics.
async function suggestColumns() {
  const {settings} = state.current ? await ask('api/run?' + query({run: state.current})) : {settings: {}};
  const metrics = [...state.shown.values()].flatMap(run => Object.keys(run.series));
  $('keys-known').replaceChildren(...[...new Set([...metrics, ...Object.keys(settings)])].map(value => el('option', {value})));
}

// Filters by words in name, status, or remark, and by conditions such as loss<0.3 or train.batch_size=64.
function matches(run) {
  return wordsOfFilter().every(word => {
    const condition = conditionOf(word);
    if (condition) {
      const [, key, sign, text] = condition, have = valueOf(run, key), want = Number(text);
      if (sign === '=') return String(have) === text;
      if (have == null || Number.isNaN(want)) return false;
      return sign === '<' ? have < want : sign === '>' ? have > want : sign === '<=' ? have <= want : have >= want;
    }
    return `${run.name} ${run.status} ${run.remark}`.toLowerCase().includes(word.toLowerCase());
  });
}

function visibleRuns() {
  const {key, down} = state.sort;
  return state.runs.filter(matches).sort((a, b) => {
    const x = valueOf(a, key) ?? -Infinity, y = valueOf(b, key) ?? -Infinity;
    return (x < y ? -1 : x > y ? 1 : 0) * (down ? -1 : 1) || a.name.localeCompare(b.name);
  });
}

function colourOf(name) {
  let hash = 0;
  for (const c of name) hash = (hash * 31 + c.charCodeAt(0)) >>> 0;
  const used = new Set([...state.shown.values()].map(run => run.colour));
  for (let i = 0; i < palette.length; ++i) {
    const colour = palette[(hash + i) % palette.length];
    if (!used.has(colour)) return colour;
  }
  return palette[hash % palette.length];
}

// Columns added by the user come first, after the name.
function shownColumns() {
  const text = value => typeof value === 'number' ? short(value) : String(value ?? '');
  const added = state.columns.map(key => ({key, title: key, number: true, added: true, text: run => text(valueOf(run, key))}));
  return [columns[0], ...added, ...columns.slice(1)];
}

// Redraws the table every second and preserves the keyboard focus.
function keepFocus(draw) {
  const label = $('runs').contains(document.activeElement) ? document.activeElement.ariaLabel : null;
  draw();
  if (label) [...$('runs').querySelectorAll('[aria-label]')].find(node => node.ariaLabel === label)?.focus({preventScroll: true});
}

const drawRuns = () => keepFocus(drawTable);

function drawTable() {
  const all = shownColumns();
  const head = el('tr', {}, el('th', {}), ...all.map(column => {
    const arrow = state.sort.key === column.key ? (state.sort.down ? ' ↓' : ' ↑') : '';
    const button = el('button', {type: 'button', ariaLabel: `Sort by ${column.title}`}, column.title + arrow);
    button.addEventListener('click', () => {
      state.sort = {key: column.key, down: state.sort.key === column.key ? !state.sort.down : column.key !== 'name'};
      drawRuns();
    });
    const remove = column.added ? el('button', {type: 'button', title: `Remove ${column.key}`, ariaLabel: `Remove ${column.key}`}, '×') : null;
    remove?.addEventListener('click', () => removeColumn(column.key));
    return el('th', {className: column.number ? 'number' : ''}, button, remove);
  }));
  $('runs').tHead.replaceChildren(head);
  const rows = visibleRuns().map(run => {
    const tick = el('input', {type: 'checkbox', checked: state.shown.has(run.name), ariaLabel: `Show ${run.name}`});
    tick.style.setProperty('--run', state.shown.get(run.name)?.colour ?? '');
    tick.addEventListener('click', event => { event.stopPropagation(); toggle(run.name); });
    const row = el('tr', {className: run.name === state.current ? 'current' : '', title: `${run.status}${run.remark ? ': ' + run.remark : ''}`},
      el('td', {}, tick),
      ...all.map((column, i) => el('td', {className: column.number ? 'number' : 'name'}, i === 0 ? el('span', {className: `dot ${run.status}`}) : null, i === 0 ? ' ' : null, column.text(run))));
    row.addEventListener('click', () => { setCurrent(run.name); if (!state.shown.has(run.name)) toggle(run.name); });
    return row;
  });
  $('runs').tBodies[0].replaceChildren(...rows);
  $('none').hidden = rows.length > 0 || state.runs.length === 0;
  $('empty').hidden = state.runs.length > 0;
}

// ---- curves

async function loadSeries(name, whole) {
  const run = state.shown.get(name);
  if (!run) return;
  const wanted = {run: name, points: pointsWanted};
  const last = run.last;
  const part = !whole && !charts.range && last > 0 && run.count < 2 * pointsWanted;
  if (part) wanted.from = last;
  else if (charts.range) [wanted.from, wanted.to] = charts.range.map(Math.round);
  const answer = await ask('api/series?' + query(wanted));
  if (!state.shown.has(name)) return;
  run.events = answer.events;
  if (!part) run.series = answer.series;
  else for (const [key, more] of Object.entries(answer.series)) append(run.series[key] ??= {x: [], y: []}, more);
  run.last = Math.max(0, ...Object.values(run.series).map(({x}) => x[x.length - 1] ?? 0));
  run.count = Math.max(0, ...Object.values(run.series).map(({x}) => x.length));
}

// The last points may have been merged with others.
function append(points, more) {
  if (!more.x.length) return;
  while (points.x.length && points.x[points.x.length - 1] >= more.x[0]) { points.x.pop(); points.y.pop(); }
  points.x.push(...more.x);
  points.y.push(...more.y);
}

function drawCurves() {
  charts.smoothing = Number($('smoothing').value);
  charts.log = $('log').checked;
  const runs = [...state.shown.values()];
  charts.draw(runs);
  const events = runs.flatMap(run => run.events.map(event => ({...event, run}))).sort((a, b) => b.step - a.step).slice(0, 100);
  $('events-title').hidden = events.length === 0;
  $('events').replaceChildren(...events.map(event => {
    const mark = el('span', {className: 'dot'});
    mark.style.cssText = `background:${event.run.colour};margin-top:6px`;
    return el('li', {}, mark, el('b', {}, `step ${event.step.toLocaleString('en')}`), el('span', {}, `${runs.length > 1 ? event.run.name + ': ' : ''}${event.text}`));
  }));
}

async function setRange(range) {
  charts.range = range && range[1] - range[0] >= 1 ? range : null;
  drawCurves();
  await Promise.all([...state.shown.keys()].map(name => loadSeries(name, true)));
  drawCurves();
}

function zoom(factor, shift) {
  const shown = charts.shown();
  if (!shown) return;
  const [low, high] = shown, half = (high - low) / 2 * factor, middle = (low + high) / 2 + shift * (high - low);
  setRange([Math.max(0, middle - half), middle + half]);
}

async function toggle(name) {
  state.chosen = true;
  if (state.shown.has(name)) state.shown.delete(name);
  else {
    state.shown.set(name, {name, colour: colourOf(name), series: {}, events: [], last: 0, count: 0});
    await loadSeries(name, true).catch(report);
  }
  drawRuns();
  drawCurves();
  if (state.tab === 'compare') drawTab();
}

// ---- details and comparison

function rowsOf(object) {
  return Object.entries(object).filter(([, value]) => typeof value !== 'object').map(([key, value]) =>
    el('tr', {}, el('td', {className: 'quiet'}, key.replaceAll('_', ' ')), el('td', {className: 'number'}, typeof value === 'number' ? short(value) : value)));
}

// Redraws after changes, but never while the user edits notes.
let details = '', said = {};  // what is drawn, and what the last save of notes told whom
async function drawDetails() {
  const name = state.current, row = state.runs.find(run => run.name === name);
  const wanted = `${name} ${row?.version}`;
  if (details === wanted) return;
  const run = await ask('api/run?' + query({run: name}));
  const before = $('notes');
  if (state.current !== name) return;
  if (details.startsWith(name + ' ') && before && (before === document.activeElement || before.value !== before.defaultValue)) return;
  details = wanted;
  const {overview} = run;
  const notes = el('textarea', {id: 'notes', defaultValue: run.notes, placeholder: 'Notes about this run', ariaLabel: 'Notes'});
  const saved = el('span', {id: 'saved', className: 'quiet'}, said.run === name ? said.text : '');
  const save = el('button', {type: 'button'}, 'save notes');
  const tell = text => {
    said = {run: name, text};
    if (state.current === name && $('saved')) $('saved').textContent = text;
  };
  notes.addEventListener('input', () => tell(''));
  save.addEventListener('click', async () => {
    const answer = await fetch('api/notes?' + query({run: name}), {method: 'POST', headers: {'X-Artel': 'notes', 'Content-Type': 'text/plain'}, body: notes.value});
    if (answer.ok) notes.defaultValue = notes.value;
    tell(answer.ok ? ' saved' : ` not saved: ${await answer.text()}`);
  });
  const picture = run.files.includes('confusion.svg')
    ? el('div', {className: 'card'}, el('h2', {}, 'Confusion matrix'), el('img', {className: 'picture', src: 'api/file?' + query({run: name, file: 'confusion.svg'}), alt: 'confusion matrix'})) : null;
  const files = el('p', {className: 'quiet'}, 'Files: ');
  run.files.forEach(file => files.append(el('a', {href: 'api/file?' + query({run: name, file}), target: '_blank', rel: 'noopener'}, file), ' '));
  $('details').replaceChildren(
    el('div', {className: `card says ${overview.status === 'finished' || overview.status === 'running' ? 'fine' : ''}`},
      el('strong', {}, `${name}: ${overview.status}`), el('div', {className: 'quiet'}, overview.remark)),
    el('div', {className: 'grid'},
      el('div', {className: 'card'}, el('h2', {}, 'Result'), el('table', {}, el('tbody', {}, ...rowsOf(run.summary ?? {step: overview.step, loss: overview.loss ?? '', seconds: overview.seconds}))), files),
      el('div', {className: 'card'}, el('h2', {}, 'Notes'), notes, save, saved),
      ...[picture, mistakesCard(name, run.mistakes), textsCard(run.texts)].filter(Boolean),
      el('div', {className: 'card'}, el('h2', {}, 'Configuration'), el('pre', {tabIndex: 0}, run.config))));
}

async function drawCompare() {
  const names = [...state.shown.keys()];
  if (names.length < 2) {
    $('compare').replaceChildren(el('p', {className: 'quiet'}, 'Select two or more runs to compare them.'));
    return;
  }
  const parameters = new URLSearchParams(names.map(name => ['run', name]));
  const differences = await ask('api/differences?' + parameters);
  const runs = names.map(name => state.runs.find(run => run.name === name)).filter(Boolean);
  const row = (title, values) => el('tr', {}, el('td', {className: 'quiet'}, title), ...values.map(value => el('td', {className: 'number'}, value ?? '')));
  $('compare').replaceChildren(el('div', {className: 'card wide-card'}, el('table', {},
    el('thead', {}, el('tr', {}, el('th', {}), ...runs.map(run => {
      const mark = el('span', {className: 'dot'});
      mark.style.background = state.shown.get(run.name).colour;
      return el('th', {className: 'number'}, mark, ' ' + run.name);
    }))),
    el('tbody', {}, row('status', runs.map(run => run.status)), row('step', runs.map(run => run.step.toLocaleString('en'))),
      row('loss', runs.map(run => short(run.loss))), row('result', runs.map(run => run.metric == null ? '' : `${run.metric_name} ${short(run.metric)}`)),
      row('seconds', runs.map(run => short(run.seconds))), ...differences.map(({key, values}) => row(key, values))))));
}

// ---- tabs

const tabs = ['curves', 'workers', 'details', 'compare'];

async function drawTab() {
  for (const tab of tabs) $(tab).hidden = tab !== state.tab || state.runs.length === 0;
  for (const button of $('tabs').children) button.ariaSelected = String(button.value === state.tab);
  if (!state.current && state.tab !== 'curves') return;
  if (state.tab === 'curves') { drawCurves(); charts.resize(); }
  if (state.tab === 'workers') {
    const [view, history, trace] = await Promise.all(['live', 'history', 'trace'].map(what => ask(`api/${what}?` + query({run: state.current}))));
    drawWorkers($('workers'), state.current, view, history, trace);
  }
  if (state.tab === 'details') await drawDetails();
  if (state.tab === 'compare') await drawCompare();
}

function setTab(tab) {
  state.tab = tab;
  drawTab().catch(report);
}

function setCurrent(name) {
  state.current = name;
  drawRuns();
  if (state.tab !== 'curves') drawTab().catch(report);
}

// ---- keeping up to date

function report(error) {
  $('connection').className = 'dot';
  $('connection').title = error.message;
}

async function loadRuns() {
  const {folder, runs} = await ask('api/runs');
  state.runs = runs;
  $('folder').textContent = folder;
  document.title = `artel: ${folder}`;
  for (const name of [...state.shown.keys()]) if (!runs.some(run => run.name === name)) state.shown.delete(name);
  if (!runs.some(run => run.name === state.current)) state.current = null;
  const newest = [...runs].sort((a, b) => (b.status === 'running') - (a.status === 'running') || b.begun - a.begun);
  state.current ??= newest[0]?.name ?? null;
  await loadValues();
  // Default selection: runs in progress, or else the newest.
  if (!state.chosen) {
    const running = newest.filter(run => run.status === 'running');
    for (const run of (state.shown.size ? running : newest).slice(0, mostShownAtFirst))
      if (!state.shown.has(run.name) && state.shown.size < mostShownAtFirst)
        state.shown.set(run.name, {name: run.name, colour: colourOf(run.name), series: {}, events: [], last: 0, count: 0});
  }
}

let updating = false, due = new Set();
async function update(changed) {
  changed.forEach(name => due.add(name));
  if (updating || !due.size && state.runs.length) return;
  updating = true;
  try {
    const names = due;
    due = new Set();
    await loadRuns();
    drawRuns();
    await Promise.all([...state.shown.keys()].filter(name => names.has(name) || !state.shown.get(name).last).map(name => loadSeries(name, false)));
    await drawTab();
    document.body.dataset.ready = 'yes';
    document.body.dataset.updates = Number(document.body.dataset.updates ?? 0) + 1;
    $('connection').className = 'dot on';
    $('connection').title = 'connected';
  } catch (error) {
    report(error);
  } finally {
    updating = false;
  }
}

function listen() {
  const stream = new EventSource('api/stream');
  stream.onmessage = event => update(JSON.parse(event.data));
  stream.onerror = () => {
    report(new Error('the dashboard does not answer; retrying'));
    if (stream.readyState === EventSource.CLOSED) setTimeout(listen, 5000);  // refused: too many pages are open
  };
}

// ---- the page itself

function setTheme(dark) {
  document.documentElement.classList.toggle('dark', dark);
  try { localStorage.setItem('artel-theme', dark ? 'dark' : 'light'); } catch { /* not allowed to remember */ }
}
let remembered = null;
try { remembered = localStorage.getItem('artel-theme'); } catch { /* nothing is remembered */ }
setTheme(remembered ? remembered === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches);
const switchTheme = () => { setTheme(!document.documentElement.classList.contains('dark')); drawTab().catch(report); };

for (const tab of tabs) {
  const button = el('button', {type: 'button', role: 'tab', value: tab}, tab[0].toUpperCase() + tab.slice(1));
  button.addEventListener('click', () => setTab(tab));
  $('tabs').append(button);
}
$('theme').addEventListener('click', switchTheme);
$('help').addEventListener('click', () => $('keys').showModal());
$('reset').addEventListener('click', () => setRange(null));
$('smoothing').addEventListener('input', drawCurves);
$('log').addEventListener('change', drawCurves);
$('filter').addEventListener('input', () => {
  state.filter = $('filter').value;
  drawRuns();
  loadValues().then(drawRuns).catch(report);
});
$('column').addEventListener('focus', () => suggestColumns().catch(report));
$('column').addEventListener('change', () => {
  addColumn($('column').value.trim()).catch(report);
  $('column').value = '';
});

const keys = {
  '/': () => $('filter').focus(), c: () => $('column').focus(), t: switchTheme, '?': () => $('keys').showModal(), 0: () => setRange(null), '+': () => zoom(0.5, 0), '=': () => zoom(0.5, 0),
  '-': () => zoom(2, 0), ArrowLeft: () => zoom(1, -0.25), ArrowRight: () => zoom(1, 0.25), x: () => state.current && toggle(state.current),
  j: () => move(1), k: () => move(-1), 1: () => setTab('curves'), 2: () => setTab('workers'), 3: () => setTab('details'), 4: () => setTab('compare'),
};
function move(by) {
  const runs = visibleRuns();
  const at = runs.findIndex(run => run.name === state.current);
  const next = runs[Math.min(runs.length - 1, Math.max(0, at + by))];
  if (next) setCurrent(next.name);
}
document.addEventListener('keydown', event => {
  if (event.target.matches('input[type=search], textarea, select')) {
    if (event.key === 'Escape') event.target.blur();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || $('keys').open || !(event.key in keys)) return;
  if (event.target.matches('input[type=range]') && event.key.startsWith('Arrow')) return;
  event.preventDefault();
  keys[event.key]();
});

listen();
