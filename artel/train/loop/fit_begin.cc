// The beginning of a membership, before its first step: workers compare their configuration and
// obtain the same state.
#include <cstring>

#include "artel/base/error.h"
#include "artel/base/log.h"
#include "artel/train/loop/buckets.h"
#include "artel/train/loop/epoch_sums.h"
#include "artel/train/loop/fit_loop.h"
#include "artel/train/loop/history.h"
#include "artel/train/loop/kept_states.h"
#include "artel/train/loop/room.h"
#include "artel/train/loop/state_source.h"
#include "artel/train/loop/state_transfer.h"
#include "artel/train/parts/divided_state.h"
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
  saver_.mark_saved();
}

std::unique_ptr<Workload> FitLoop::make_workload() {
  return kind_.workload ? kind_.workload(s_, loader_, options_) : batches_of(s_, loader_, options_);
}

// Starts training with the present members of the cluster. Verifies that all have the same
// configuration and compiled program, gives all the same state, and creates the objects of a
// membership.
void FitLoop::join() {
  saver_.finish();
  tracer_.drop(leads_);
  saver_.end_copies();
  newcomers_.end_membership();
  departures_.end_membership();
  if (strategy_) {
    require(strategy_->traits().survives_losses, ErrorKind::unsupported,
            "each worker has only a part of the network, so the others cannot continue; resume "
            "from a checkpoint, or set cluster.mirror_every above 0");
    traffic_->end_membership(*strategy_);
  }
  parts_.end_membership();
  if (strategy_ && divides_ && s_.generation >= 0) parts_.keep_own(*strategy_);
  const bool joins = s_.generation < 0;
  interruptions_.end_membership();
  if (s_.cluster.membership().generation > std::max<int64_t>(0, s_.generation))
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
  first_worker_ = {};
  interruptions_.check_losses();
  continue_epoch_sums(s_, metrics_);
  if (judge_) judge_->restore();
  now_.step = s_.step;
  if (group) {
    share_history(*group, source, joins);
    catch_up(*group, source);
  }
  loader_.seek(s_.position);
  workload_->begin();
  if (LanePartition* const lanes = workload_->lane_partition()) {
    check_lanes(s_, *lanes, newcomers_.stands_by());
    if (newcomers_.adds_exactly()) lanes->align();
  }
  if (workload_->stepper() && newcomers_.adds_exactly()) choose_buckets(s_, *workload_->stepper());
  std::unique_ptr<Strategy> strategy =
      make_strategy({.cluster = s_.cluster,
                     .model = s_.model,
                     .options = s_.options,
                     .parameters = s_.parameters,
                     .step = s_.step,
                     .extra_updates = s_.extra_updates,
                     .stop = s_.stop,
                     .trace = s_.trace,
                     .newcomers = newcomers_.announced(),
                     .leaves = departures_.announced(),
                     .readers = readers_,
                     .kept = s_.kept,
                     .lanes = s_.lanes,
                     .stepper = workload_->stepper(),
                     .lane_partition = workload_->lane_partition(),
                     .timeline = &tracer_.timeline(),
                     .batch_size = options_.batch_size,
                     .steps_per_epoch = per_epoch_,
                     .last_step = now_.steps,
                     .save_every = options_.save_every,
                     .noise_every = options_.noise_every,
                     .saves = !saver_.folder().empty(),
                     .tests = validation_ != nullptr,
                     .gather_network = options_.gather_network,
                     .judges = options_.target_accuracy > 0 || options_.patience > 0,
                     .set = loader_.set()});
  StrategyState kept;
  if (const auto found = s_.kept.find(strategy->state_name()); found != s_.kept.end())
    kept = found->second;
  if (group) kept.tensors = share_tensors(*group, kept.tensors, source);
  if (parts_.assembles())
    parts_.assemble(group, state_transfer_of(*strategy), workload_->stepper()->update());
  else if (divides_)
    hand_out_state(s_, *group, *state_transfer_of(*strategy));
  strategy->restore(kept);
  set_strategy(std::move(strategy));
  parts_.end(divides_);
  interruptions_.begin_membership();
  if (divides_ && strategy_->divided()->mirror_every() > 0 && s_.cluster.elastic())
    parts_.mirrors().begin(*group, strategy_->divided()->updated_parts(),
                           static_cast<double>(s_.options.worker_memory));
  if (group) newcomers_.begin_arrival(*group, *workload_);
  if (group && options_.checkpoint_copies > 1) saver_.choose_copies(*group, divides_);
  speeds_.reset();
  if (group && chooses_mesh(s_.cluster, s_.options.strategy_options) &&
      workload_->lane_partition() && (!divides_ || strategy_->traits().survives_losses))
    speeds_.emplace();
}

// Collective, between two steps. When the speeds of workers have changed, another mesh may be
// better. Its parts come from the present workers, as after a change of membership.
void FitLoop::watch_speeds() {
  if (!speeds_ || !result_.stopped_by.empty() ||
      !speeds_->has_changed(*s_.cluster.group(), s_.step,
                            workload_->lane_partition()->lane_seconds()))
    return;
  set_phase("choice of a mesh after step", s_.step);
  if (!reconsider_mesh({s_.cluster, *workload_->stepper(), options_.batch_size}, asked_,
                       s_.options))
    return speeds_->accept();
  if (s_.cluster.rank() == 0)
    log(LogLevel::info, "step {}: worker speeds changed; choosing another mesh", s_.step);
  join();
}

// Agrees with the others and continues with the state of one worker, whose rank it returns. `text`
// is the state's text that belongs to the weights; empty while the weights are a mixture of two
// steps.
int FitLoop::take_over_state(comm::Group* group, std::string& text) {
  if (group) introduction_.compare(*group);
  tracer_.meet(group);
  StateSource source = group ? most_advanced(s_, *group, per_epoch_, parts_.has_copies())
                             : StateSource{.is_fresh = true, .in_parts = parts_.has_copies()};
  if (source.is_fresh) check_first_worker(s_, first_worker_);
  if (source.in_parts) {
    const int64_t before = s_.step;
    s_.restore_state(parts_.select_state(group));
    source.rank = parts_.text_source();
    log_repeated_steps(before - s_.step);
  } else if (group) {
    if (s_.choices.tune) {
      // Only one worker measures; all others get its choices.
      if (group->rank() == source.rank) workload_->compile();
      s_.choices.tune = false;
    }
    const std::string theirs = broadcast_text(*group, s_.state_text(), source.rank);
    if (!source.continues_apart) s_.restore_state(theirs);
    if (source.is_fresh)
      continue_after_own_step(s_, kind_.names.front(), per_epoch_, options_.batch_size);
  }
  require(s_.step >= 0, ErrorKind::cancelled,
          "the weights of this worker are incomplete: its group broke while it received them; "
          "resume from a checkpoint");
  workload_->prepare();
  if (Stepper* const stepper = workload_->stepper()) {
    reset_buckets(s_, *stepper);
    const MeshTask task = {s_.cluster, *stepper, options_.batch_size, taken_};
    find_room(s_, task, newcomers_.most_workers());
    now_.forecast_seconds = forecast_step(task, s_.options);
  }
  const Situation situation = {s_.cluster, s_.options, s_.kept};
  divides_ = divides_state(situation);
  const StrategyKind& kind = strategy_at_work(situation);
  newcomers_.begin_membership(group && kind.adds_exactly && kind.adds_exactly(s_.options),
                              kind.follows_without_lanes);
  if (group && !source.in_parts && sends_while_training(source))
    newcomers_.receive(source.newcomers);
  if (newcomers_.receives(s_.cluster.rank())) {
    // The state will be received, so initial values are not needed.
    s_.first_values.drop();
    s_.pending_optimizer.clear();
  } else if (!divides_) {
    s_.fill();
  }
  tracer_.record(*workload_);
  metrics_ = workload_->metrics();
  if (group) {
    check_agreement(*group, workload_->facts());
    if (!source.in_parts) {
      if (!source.self_current && group->rank() != source.rank) text.clear();
      // Worker 0 hands out tensors that belong to other workers.
      if (!newcomers_.any_receives() && (divides_ ? !source.rank0_current : !source.all_current))
        share_state(s_, *workload_, *group, source.rank);
      if (!newcomers_.receives(group->rank())) text = s_.state_text();
    }
    // Any worker that becomes worker 0 continues there.
    std::string folder = broadcast_text(*group, saver_.folder().string(), source.rank);
    saver_.set_folder(std::move(folder), broadcast_text(*group, saver_.identity(), source.rank));
  }
  return source.rank;
}

// Logs the steps that are repeated because the state goes back to a copy.
void FitLoop::log_repeated_steps(int64_t steps) {
  if (steps <= 0) return;
  if (s_.cluster.rank() == 0)
    log(LogLevel::warning, "restored the lost worker's state from step {}: {} repeated", s_.step,
        steps == 1 ? "1 step is" : fmt::format("{} steps are", steps));
  if (!result_.changes.empty()) result_.changes.back().repeated = steps;
}

// Gives a newcomer the times and membership changes of the others, for its own reports later.
void FitLoop::share_history(comm::Group& group, int root, bool joins) {
  const std::string text = broadcast_text(
      group, to_text(History{seconds_between(begin_, Clock::now()), now_.samples, result_.changes}),
      root);
  if (!joins || group.rank() == root) return;
  History history = history_from_text(text);
  interruptions_.join();
  begin_ = interruptions_.began() - std::chrono::duration_cast<Clock::duration>(
                                        std::chrono::duration<double>(history.seconds));
  now_.samples = history.samples;
  result_.changes = std::move(history.changes);
}

// A worker that adopts a step finished only by others reports it as they did, so that every step
// has its line of metrics, whichever worker writes them.
void FitLoop::catch_up(comm::Group& group, int root) {
  const auto own = std::as_bytes(std::span(last_step_));
  const std::string bytes = broadcast_text(
      group, std::string(reinterpret_cast<const char*>(own.data()), own.size()), root);
  std::vector<double> last(bytes.size() / sizeof(double));
  if (!last.empty()) std::memcpy(last.data(), bytes.data(), last.size() * sizeof(double));
  constexpr size_t kSums = 5;
  const int64_t before = std::exchange(last_reported_step_, std::max(last_reported_step_, s_.step));
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

// True if newcomers can receive the state during the next step, and no test comes first.
bool FitLoop::sends_while_training(const StateSource& source) const {
  const bool epoch_ends = s_.step % per_epoch_ == 0 && s_.epoch.samples > 0;
  return !source.newcomers.empty() && newcomers_.adds_exactly() && s_.step < now_.steps &&
         !epoch_ends;
}

}  // namespace artel
