// What workers do before the first step of a membership: agree on what they are about to do, and
// begin with one state.
#include <algorithm>
#include <cstring>
#include <tuple>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/log.h"
#include "artel/base/text.h"
#include "artel/base/version.h"
#include "artel/cluster/launcher.h"
#include "artel/train/divided_state.h"
#include "artel/train/facts.h"
#include "artel/train/fit_loop.h"
#include "artel/train/history.h"
#include "artel/train/kept_states.h"
#include "artel/train/strategies/fitting_mesh.h"
#include "artel/train/strategies/mesh_choice.h"
#include "artel/train/strategies/registry.h"

namespace artel {

void FitLoop::resume() {
  if (!options_.resume || s_.cluster.rank() != 0) return;
  auto newest = checkpoint::load_newest(options_.checkpoints);
  if (!newest) return;
  for (const std::string& reason : newest->refused) log(LogLevel::warning, "{}", reason);
  s_.restore(std::move(newest->checkpoint));
  saved_ = s_.step;
}

std::unique_ptr<Workload> FitLoop::make_workload() {
  return kind_.workload ? kind_.workload(s_, loader_, options_) : batches_of(s_, loader_, options_);
}

// Starts training with the present members of the cluster: makes sure that all were asked to do the
// same and understood it in the same way, gives all the same state, and creates whatever belongs to
// a membership.
void FitLoop::join() {
  finish_saving();
  drop_trace();
  arrival_.reset();
  late_.clear();
  newcomers_ = false;
  if (strategy_) {
    require(strategy_->can_lose_workers(), ErrorKind::unsupported,
            "each worker has only a part of the network, so others cannot go on without it; resume "
            "from a checkpoint, or set cluster.mirror_every above 0");
    const Strategy::Traffic waits = strategy_->traffic();
    waits_before_.waited_seconds += waits.waited_seconds;
    waits_before_.wire_seconds += waits.wire_seconds;
    traffic_before_ = traffic_;
  }
  keep_parts();
  const bool joins = s_.generation < 0;
  const bool progressed = begun_at_ >= 0 && s_.step > begun_at_;
  if (s_.cluster.membership().generation > 0)
    s_.options.strategy_options = fitting_mesh(asked_, s_.cluster.size());
  s_.set_strategy(nullptr);
  strategy_.reset();
  workload_.reset();
  workload_ = make_workload();
  comm::Group* const group = s_.cluster.group();
  std::string text = s_.step >= 0 ? s_.state_text() : "";
  int source = 0;
  try {
    source = take_over_state(group, text);
  } catch (...) {
    if (text.empty())
      s_.step = -1;
    else
      s_.restore_state(text);
    throw;
  }
  s_.generation = s_.cluster.membership().generation;
  check_losses(progressed);
  begin_counting();
  if (plateau_) plateau_.emplace(std::get<optim::Plateau>(s_.options.schedule.shape), s_.plateau);
  now_.step = s_.step;
  if (group) {
    share_history(*group, source, joins);
    catch_up(*group, source);
  }
  loader_.seek(s_.position);
  workload_->begin(adds_exactly_);
  if (adds_exactly_ && workload_->division()) workload_->division()->align();
  std::unique_ptr<Strategy> strategy =
      make_strategy({.cluster = s_.cluster,
                     .model = s_.model,
                     .options = s_.options,
                     .parameters = s_.parameters,
                     .step = s_.step,
                     .extra_updates = s_.extra_updates,
                     .stop = s_.stop,
                     .trace = s_.trace,
                     .newcomers = s_.newcomers,
                     .before_change = s_.before_change,
                     .kept = s_.kept,
                     .lanes = s_.lanes,
                     .stepper = workload_->stepper(),
                     .division = workload_->division(),
                     .timeline = &timeline_,
                     .batch_size = options_.batch_size,
                     .steps_per_epoch = per_epoch_,
                     .last_step = now_.steps,
                     .save_every = options_.save_every,
                     .noise_every = options_.noise_every,
                     .saves = !checkpoints_.empty(),
                     .tests = validation_ != nullptr,
                     .whole = options_.whole,
                     .judges = options_.target_accuracy > 0 || options_.patience > 0,
                     .set = loader_.set()});
  StrategyState kept;
  if (const auto found = s_.kept.find(strategy->kept_as()); found != s_.kept.end())
    kept = found->second;
  if (group) kept.tensors = share_tensors(*group, kept.tensors, source);
  if (restoration_)
    put_together(group, strategy->divided());
  else if (divides_)
    hand_out_state(*group, *strategy->divided());
  strategy->restore(kept);
  set_strategy(std::move(strategy));
  mirrors_.keep_only(restoration_ && divides_ ? restoration_->step : -1);
  restoration_.reset();
  begun_at_ = s_.step;
  if (divides_ && strategy_->mirror_every() > 0 && s_.cluster.elastic())
    mirrors_.begin(*group, strategy_->updated_parts(),
                   static_cast<double>(s_.options.worker_memory));
  if (!late_.empty()) begin_arrival(*group);
  if (group && options_.checkpoint_copies > 1) choose_copies();
}

// Collective. The first worker of each further machine keeps a copy, unless it sees the folder of
// worker 0: a file system that they share needs none.
void FitLoop::choose_copies() {
  comm::Group& group = *s_.cluster.group();
  const std::string mark =
      broadcast_text(group, fmt::format("{}.{:x}", s_.cluster.membership().generation,
                                        Clock::now().time_since_epoch().count()));
  const std::filesystem::path file = checkpoints_.parent_path() / (".machine-" + mark);
  const bool saves = !checkpoints_.empty();
  if (group.rank() == 0 && saves) write_file_atomically(file, "");
  group.barrier({.label = "copies"});
  const std::vector<int> machines = group.host_numbers();
  const int own = machines[group.rank()];
  const bool first = std::ranges::find(machines, own) - machines.begin() == group.rank();
  keeps_copy_ = saves && !divides_ && s_.cluster.servers() == 0 && group.rank() > 0 && first &&
                own < options_.checkpoint_copies && !std::filesystem::exists(file);
  if (divides_ && group.rank() == 0)
    log(LogLevel::warning,
        "cluster.checkpoint_copies has no effect where each worker has only a part of the state");
  group.barrier({.label = "copies"});
  if (group.rank() == 0 && saves) std::filesystem::remove(file);
  if (keeps_copy_ && options_.before_copying) options_.before_copying(checkpoints_);
}

// Agrees with the others and goes on with the state of one of them, whose rank it returns. `text`
// is what goes with the weights at each moment; empty while they are a mixture.
int FitLoop::take_over_state(comm::Group* group, std::string& text) {
  Source source;
  if (group) {
    // Files that differ come first: samples that differ follow from them.
    Facts all = data_check_.disputed(*group).value_or(Facts());
    for (auto& fact : facts()) all.push_back(std::move(fact));
    check_agreement(*group, all);
    if (!data_check_.pending() && s_.cluster.elastic()) introduce();
  } else {
    check_first_worker();
  }
  if (options_.timeline && timeline_.recording())
    timeline_.meet(group);
  else if (options_.timeline)
    timeline_.start(group);
  if (group)
    source = most_advanced(*group);
  else
    source.in_parts = !mirrors_.copies().empty();
  if (source.in_parts) {
    const int64_t before = s_.step;
    s_.restore_state(find_parts(group));
    source.rank = restoration_->text_from;
    tell_repeated(before - s_.step);
  } else if (group) {
    if (s_.choices.tune) {
      // Only one worker measures; all others get its choices.
      if (group->rank() == source.rank) workload_->compile();
      s_.choices.tune = false;
    }
    const std::string theirs = broadcast_text(*group, s_.state_text(), source.rank);
    if (!source.goes_on) s_.restore_state(theirs);
    if (source.begins) continue_after_own_step();
  }
  require(s_.step >= 0, ErrorKind::cancelled,
          "the weights of this worker are incomplete: its group broke while it received them; "
          "resume from a checkpoint");
  workload_->prepare();
  if (workload_->stepper()) find_room(group);
  const Situation situation = {s_.cluster, s_.options, s_.kept};
  divides_ = divides_state(situation);
  const auto& adds_exactly = strategy_at_work(situation).adds_exactly;
  adds_exactly_ = group && adds_exactly && adds_exactly(s_.options);
  if (group && !source.in_parts && sends_while_training(source)) late_ = source.late;
  if (!late_.empty() && late_[group->rank()]) {
    // The others wait for this worker: what it gets need not be made first.
    s_.first_values.drop();
    s_.pending_optimizer.clear();
  } else if (!divides_) {
    s_.fill();
  }
  if (timeline_.recording()) workload_->record(&timeline_);
  metrics_ = workload_->metrics();
  if (group) {
    check_agreement(*group, workload_->facts());
    if (!source.in_parts) {
      if (!source.here && group->rank() != source.rank) text.clear();
      // Worker 0 hands out what others are to keep.
      if (late_.empty() && (divides_ ? !source.first : !source.everywhere))
        share_state(*group, source.rank);
      if (late_.empty() || !late_[group->rank()]) text = s_.state_text();
    }
    // Whoever becomes worker 0 goes on there.
    checkpoints_ = broadcast_text(*group, checkpoints_.string(), source.rank);
  }
  return source.rank;
}

// Where workers ran apart before the run was saved, each continues after the last of its steps that
// the weights contain. A worker that took no part then starts where worker 0 was.
void FitLoop::continue_after_own_step() {
  const auto kept = s_.kept.find(kind_.names.front());
  if (kept == s_.kept.end()) return;
  const std::optional<OwnSteps> steps = own_steps(kept->second);
  if (!steps || steps->step != s_.step) return;  // another strategy was at work since
  const bool differ =
      std::ranges::any_of(steps->finished, [&](auto& each) { return each.second != s_.step; });
  if (differ && std::ssize(steps->finished) != s_.cluster.size() && s_.cluster.rank() == 0)
    log(LogLevel::warning,
        "step {}: {} workers had made different numbers of steps when the run was saved, and it "
        "continues with {}: some steps are repeated or left out",
        s_.step, steps->finished.size(), s_.cluster.size());
  const auto own = steps->finished.find(s_.cluster.membership().number_of(s_.cluster.rank()));
  if (own == steps->finished.end() || own->second == s_.step) return;
  s_.extra_updates += s_.step - own->second;
  s_.step = own->second;
  s_.position = {s_.step / per_epoch_, s_.step % per_epoch_ * options_.batch_size};
  s_.epoch = {};
}

// Chooses a mesh that fits into the memory of the workers. Those who are left and have too little
// wait for others, with the copies that they have.
void FitLoop::find_room(comm::Group* group) {
  const MeshTask task = {s_.cluster, *workload_->stepper(), options_.batch_size};
  const bool may_wait = s_.cluster.elastic() && s_.cluster.membership().generation > 0;
  std::string lack;
  try {
    choose_mesh(task, s_.options);
    check_worker_memory(task, s_.options);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::memory || !may_wait) throw;
    lack = error.what();
  }
  if (may_wait) {
    if (group) {
      const std::vector<std::string> all = gather_text(*group, lack);
      const auto found = std::ranges::find_if(all, [](const auto& each) { return !each.empty(); });
      lack = broadcast_text(*group, found == all.end() ? "" : *found);
    }
    if (!lack.empty()) {
      s_.cluster.wait_for_newcomers(most_workers(), lack, [this] { return s_.stop || s_.leave; });
      fail(ErrorKind::cancelled,
           "stopped while it waited for workers; resume from the last checkpoint");
    }
  }
  spare_mirrors(task, s_.options);
}

// Whose state all go on with: that of worker 0. But when a group has broken in the middle of a
// step, some of its members may have finished it and others not: then the state of one who has. If
// they were at the end of an epoch, all do what is due there, those who have done so again.
FitLoop::Source FitLoop::most_advanced(comm::Group& group) const {
  struct Place {
    int64_t begun;      // it had the state of all before
    int64_t regrouped;  // in another membership
    int64_t step;
    int64_t ended;    // what is due at the end of an epoch is done
    int64_t in_step;  // whoever has finished as many steps has the same weights
    int64_t alone;    // it went its own way
    int64_t parts;    // it has parts of a state that nobody has as a whole
    auto rank() const { return std::tuple(begun, step, -ended); }
  };
  const bool begun = s_.generation >= 0;
  const Place own = {begun,
                     begun && s_.generation != s_.cluster.membership().generation,
                     s_.step,
                     s_.step % per_epoch_ == 0 && s_.epoch.samples == 0,
                     s_.in_step,
                     begun && s_.alone,
                     !mirrors_.copies().empty()};
  std::vector<Place> all(static_cast<size_t>(group.size()));
  group.all_gather(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(all)), {},
                   {.label = "finished steps"});
  if (std::any_of(all.begin(), all.end(), [](const Place& p) { return p.parts != 0; }))
    return {.in_parts = true};
  if (std::none_of(all.begin(), all.end(), [](const Place& p) { return p.regrouped != 0; })) {
    check_first_worker();
    return {.first = true, .begins = true};
  }
  const auto by_rank = [](const Place& a, const Place& b) { return a.rank() < b.rank(); };
  const auto root = std::max_element(all.begin(), all.end(), by_rank);
  // Where each goes its own way, those who have begun go on from where they are.
  const auto has_it = [&](const Place& p) {
    return root->alone ? p.alone != 0 : p.in_step && p.begun && p.step == root->step;
  };
  Source source = {.rank = static_cast<int>(root - all.begin()),
                   .here = has_it(own),
                   .first = root == all.begin() || has_it(all.front()),
                   .everywhere = std::all_of(all.begin(), all.end(), has_it),
                   .goes_on = root->alone && own.alone};
  // Whoever is behind by a step has lanes, and gets the state at once.
  if (!source.everywhere &&
      std::all_of(all.begin(), all.end(), [&](const Place& p) { return has_it(p) || !p.begun; }))
    for (const Place& place : all) source.late.push_back(!place.begun);
  return source;
}

// Before the others have its state, only worker 0 knows what the run begins with.
void FitLoop::check_first_worker() const {
  const auto& members = s_.cluster.membership().members;
  if (s_.generation >= 0 || members.empty() || members[0].number == 0) return;
  tell_launcher("unbegun");
  fail(ErrorKind::cancelled,
       "worker 0 ended before the first step, when the others did not have its state yet; try "
       "again");
}

// The sums of an interrupted epoch are continued only if they belong to the metrics of this fit.
// Checkpoints of earlier versions do not say what theirs belong to.
void FitLoop::begin_counting() {
  std::vector<std::string> counting;
  for (const Metrics::Part& part : metrics_.parts())
    counting.push_back(fmt::format("{} {}", part.metric.name, to_string(part.shape)));
  const std::vector<std::string> before = std::exchange(s_.counted, counting);
  const bool unknown = before.empty() && s_.epoch.metrics.size() == metrics_.sums();
  if (s_.epoch.samples == 0 || before == counting || unknown) return;
  s_.epoch.metrics.clear();
  if (s_.cluster.rank() == 0)
    log(LogLevel::warning,
        "step {}: the epoch was begun with the metrics {} and continues with {}; these will cover "
        "only the steps from here on",
        s_.step, before.empty() ? "of an earlier version" : artel::join(before, ", "),
        counting.empty() ? "none" : artel::join(counting, ", "));
}

Facts FitLoop::facts() const {
  Facts facts = {{"version", std::string(kHeaderVersion)},
                 {"servers", std::to_string(s_.cluster.servers())}};
  TrainerOptions asked = s_.options;
  asked.strategy_options = asked_;
  for (const Facts& part :
       {facts_of(asked), facts_of(options_), facts_of("training", &loader_.set())})
    facts.insert(facts.end(), part.begin(), part.end());
  return facts;
}

// A worker that joins continues the times of the others and their list of changes, should it have
// to report them.
void FitLoop::share_history(comm::Group& group, int root, bool joins) {
  const std::string text = broadcast_text(
      group, to_text(History{seconds_between(begin_, Clock::now()), now_.samples, result_.changes}),
      root);
  if (!joins || group.rank() == root) return;
  History history = history_from_text(text);
  broken_at_ = Clock::now();
  begin_ = broken_at_ - std::chrono::duration_cast<Clock::duration>(
                            std::chrono::duration<double>(history.seconds));
  now_.samples = history.samples;
  result_.changes = std::move(history.changes);
}

// A worker that goes on after a step that only others have finished reports it as they did: each
// step has its line of metrics, whoever writes them.
void FitLoop::catch_up(comm::Group& group, int root) {
  const auto own = std::as_bytes(std::span(last_step_));
  const std::string bytes = broadcast_text(
      group, std::string(reinterpret_cast<const char*>(own.data()), own.size()), root);
  std::vector<double> last(bytes.size() / sizeof(double));
  if (!last.empty()) std::memcpy(last.data(), bytes.data(), last.size() * sizeof(double));
  constexpr size_t kSums = 5;
  const int64_t before = std::exchange(told_, std::max(told_, s_.step));
  if (before < 0 || before >= s_.step || last.size() != kSums + metrics_.sums() ||
      static_cast<int64_t>(last[0]) != s_.step)
    return;
  last_step_ = last;
  now_.epoch = static_cast<int64_t>(last[1]);
  now_.loss = last[2];
  now_.learning_rate = last[3];
  now_.samples += static_cast<int64_t>(last[4]);
  set_metrics(std::span(last).subspan(kSums));
  now_.gradient_norm.reset();
  now_.noise.reset();
  now_.noise_scale.reset();
  now_.seconds = seconds_between(begin_, Clock::now());
  now_.left = now_.joined = 0;
  now_.repeated = 0;
  now_.seconds_lost = 0;
  for (const Callback& callback : options_.after_step)
    if (!callback(now_)) s_.stop = true;
}

// Sends the weights and optimizer state of one worker, which may have loaded them from a file.
void FitLoop::share_state(comm::Group& group, int root) {
  group.broadcast(std::as_writable_bytes(s_.parameters.block()), root, {.label = "parameters"});
  workload_->share_optimizer(group, root);
}

// Newcomers need not have it before the next step, if there is one, and if it comes before a test.
bool FitLoop::sends_while_training(const Source& source) const {
  const bool epoch_ends = s_.step % per_epoch_ == 0 && s_.epoch.samples > 0;
  return !source.late.empty() && adds_exactly_ && s_.step < now_.steps && !epoch_ends;
}

void FitLoop::begin_arrival(comm::Group& group) {
  std::vector<std::span<float>> state = workload_->stepper()->update().memory();
  state.push_back(s_.parameters.block());
  workload_->division()->set(lanes_without(late_, s_.lanes));
  arrival_.emplace(group, late_, state);
}

// All have finished the same step, and divide the lanes of the next.
void FitLoop::welcome() {
  arrival_.reset();
  late_.clear();
  workload_->division()->divide_among(s_.cluster.membership());
  workload_->division()->align();
}

// The same where each worker keeps only a part. Worker 0 reads what is in files and sends it;
// random numbers all make themselves, if nobody has made all of them before.
void FitLoop::hand_out_state(comm::Group& group, DividedState& divided) {
  PendingTensors remembered(std::exchange(s_.pending_optimizer, {}));
  int32_t pending = s_.first_values.pending() ? 1 : 0;
  group.all_reduce(std::as_writable_bytes(std::span(&pending, 1)), comm::ElementType::i32,
                   comm::ReductionKind::min, {.label = "first values"});
  const bool first = group.rank() == 0;
  if (first && pending == 0) s_.fill();
  s_.in_parts = false;
  for (const ParameterEntry& entry : s_.parameters.entries()) {
    if (divided.divides(entry.name)) continue;
    const std::span<float> values = s_.parameters.values(entry);
    if (first && pending == 1) s_.first_values.set(entry, s_.parameters);
    group.broadcast(std::as_writable_bytes(values), 0, {.label = "parameters"});
  }
  const auto is_zero = [](std::span<const float> values) {
    return std::all_of(values.begin(), values.end(), [](float x) { return x == 0; });
  };
  divided.hand_out(
      [&](const DividedState::Part& part) -> std::span<const float> {
        if (part.is_weight && pending == 0) return part.values;
        if (part.is_weight) return s_.first_values.take_loaded(part.name, part.shape, part.layout);
        const std::span<const float> saved = remembered.take(part.name, part.shape, part.layout);
        if (!saved.empty() || is_zero(part.values)) return saved;
        return part.values;
      },
      [&](const DividedState::Part& part) {
        if (part.is_weight)
          return s_.first_values.make(s_.parameters.entry(part.name), s_.parameters);
        for (const DividedState::Range& range : part.kept)
          if (const auto values = part.values.subspan(range.first, range.count); !is_zero(values))
            std::fill(values.begin(), values.end(), 0.0F);
      });
  s_.first_values.drop();
}

}  // namespace artel
