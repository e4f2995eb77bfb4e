#include "artel/run/report/live_report.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "artel/base/disk.h"
#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/host_name.h"
#include "artel/base/log.h"
#include "artel/observe/progress.h"

namespace artel {
namespace {

constexpr double kInterval = 1;  // seconds
constexpr size_t kWindow = 6;    // records that rates are measured over
constexpr double kMoment = 60;   // seconds
constexpr size_t kMostEvents = 50;
constexpr int kLongSlow = 20;                           // records
constexpr uintmax_t kLittleSpace = uintmax_t{1} << 30;  // bytes

double unix_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

double steady_seconds() {
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

// Computes rates between two vitals of a worker.
void set_rates(const Vitals& from, const Vitals& to, observe::LiveWorker& worker) {
  const double seconds = to.at - from.at;
  if (!(seconds > 0)) return;
  worker.processor = (to.processor_seconds - from.processor_seconds) / seconds;
  worker.sent_per_second = static_cast<double>(to.sent_bytes - from.sent_bytes) / seconds;
  worker.received_per_second =
      static_cast<double>(to.received_bytes - from.received_bytes) / seconds;
  if (worker.server) {
    if (to.step > from.step)
      worker.staleness = static_cast<double>(to.staleness - from.staleness) /
                         static_cast<double>(to.step - from.step);
    return;
  }
  worker.samples_per_second = static_cast<double>(to.samples - from.samples) / seconds;
  if (to.device_memory_bytes > 0)
    worker.device_copied_per_second =
        static_cast<double>(to.device_copied_bytes - from.device_copied_bytes) / seconds;
  // Steps are counted when they end, so shares are relative to the time of the last one.
  const double training = to.training - from.training;
  if (!(training > 0)) return;
  const double data = to.waiting_for_data - from.waiting_for_data,
               others = to.waiting_for_workers - from.waiting_for_workers,
               computing = std::max(0.0, training - data - others);
  worker.computing = computing / training;
  if (to.device_memory_bytes > 0)
    worker.device = std::min(1.0, (to.device_seconds - from.device_seconds) / training);
  worker.data = data / training;
  worker.workers = others / training;
  worker.wire = (to.on_the_wire - from.on_the_wire) / training;
  if (to.step > from.step && to.lanes > 0)
    worker.seconds_per_lane = computing / static_cast<double>((to.step - from.step) * to.lanes);
}

}  // namespace

Vitals vitals_of(const TrainingState& state, int cores) {
  return {.step = state.step,
          .samples = state.own_samples,
          .lanes = state.own_lanes,
          .cores = cores,
          .training = state.seconds,
          .waiting_for_data = state.seconds_waited,
          .waiting_for_workers = state.seconds_exchanging,
          .on_the_wire = state.seconds_on_wire,
          .sent_bytes = state.sent_bytes,
          .received_bytes = state.received_bytes,
          .device_seconds = state.device_use.busy_seconds,
          .device_memory_bytes = static_cast<int64_t>(state.device_use.memory),
          .device_copied_bytes =
              state.device_use.copied.to_device + state.device_use.copied.from_device,
          .mesh = state.mesh};
}

LiveReport::LiveReport(const RunFolder& folder, const VitalSigns& own, const RunConfig& config)
    : folder_(folder),
      own_(own),
      history_(folder.workers_history()),
      command_(config.observe.on_event, folder.path()),
      members_({{.name = "worker 0", .host = host_name(), .process = getpid()}}) {
  take_over();
  state_.host = host_name();
  state_.process = getpid();
  state_.strategy = config.cluster.strategy;
  thread_ = std::thread([this] { work(); });
}

// Takes over the data of the previous worker 0, if that was another process: keeps events, and
// records workers that are gone with it.
void LiveReport::take_over() {
  if (!std::filesystem::is_regular_file(folder_.live())) return;
  try {
    const observe::LiveRun before =
        observe::live_from_json(read_file(folder_.live(), 16 << 20), folder_.live().string());
    const MutexLock lock(mutex_);
    state_.events = before.events;
    if (unix_seconds() - before.at > kMoment) return;
    members_.clear();
    for (const observe::LiveWorker& worker : before.workers)
      members_.push_back({.name = worker.name, .host = worker.host, .server = worker.server});
    begun_ = true;
  } catch (const Error& error) {
    log(LogLevel::debug, "{}", error.what());
  }
}

LiveReport::~LiveReport() {
  {
    const MutexLock lock(mutex_);
    ends_ = true;
  }
  ended_.notify_one();
  thread_.join();
}

void LiveReport::set_membership(const Membership& membership) {
  std::vector<Member> members;
  comm::Group* const all = membership.world ? membership.world.get() : membership.group.get();
  const int workers = membership.size(), size = all ? all->size() : 1;
  const std::vector<std::string> hosts = all ? all->hosts() : std::vector{host_name()};
  for (int rank = 0; rank < size; ++rank) {
    const bool known = rank < workers && rank < std::ssize(membership.members);
    members.push_back({.name = rank >= workers ? fmt::format("server {}", rank - workers)
                               : known ? name_of(membership.members[static_cast<size_t>(rank)])
                                       : fmt::format("worker {}", rank),
                       .host = hosts[static_cast<size_t>(rank)],
                       .server = rank >= workers,
                       .rank = rank});
  }
  members.front().process = getpid();
  std::vector<Member> before;
  {
    const MutexLock lock(mutex_);
    group_ = membership.world ? membership.world : membership.group;
    before = std::exchange(members_, members);
  }
  if (!std::exchange(begun_, true)) return;
  const auto tell = [&](const std::vector<Member>& these, const std::vector<Member>& those,
                        const char* what) {
    for (const Member& member : these)
      if (std::ranges::find(those, member.name, &Member::name) == those.end())
        raise("worker", fmt::format("{} on host {} {}", member.name, member.host, what), true);
  };
  tell(before, members, "has gone");
  tell(members, before, "has joined");
}

void LiveReport::after_step(const TrainingState& state) {
  if (const auto warning = loss_.add({.step = state.step,
                                      .steps = state.steps,
                                      .loss = state.loss,
                                      .steps_per_epoch = state.steps_per_epoch,
                                      .seconds = state.seconds}))
    raise("loss", *warning);
  if (!mutex_.try_lock()) return;
  const MutexLock lock(mutex_, std::adopt_lock);
  state_.step = state.step;
  state_.steps = state.steps;
  state_.epoch = state.epoch;
  state_.epochs = state.epochs;
  state_.loss = state.loss;
  state_.seconds = state.seconds;
  state_.exchange = to_string(state.exchange);
  state_.lanes = state.lanes;
  state_.device = state.device;
  state_.forecast_seconds = state.forecast_seconds;
  ended_epochs_ = state.ended_epochs;
  seconds_between_epochs_ = state.seconds_between_epochs;
  samples_ = state.samples;
}

std::vector<observe::LiveEvent> LiveReport::take_events() {
  if (!mutex_.try_lock()) return {};
  const MutexLock lock(mutex_, std::adopt_lock);
  return std::exchange(untold_, {});
}

void LiveReport::raise(const std::string& kind, const std::string& text, bool logged) {
  observe::LiveEvent event = {.at = unix_seconds(), .step = 0, .kind = kind, .text = text};
  {
    const MutexLock lock(mutex_);
    event.step = state_.step;
    state_.events.push_back(event);
    if (state_.events.size() > kMostEvents) state_.events.erase(state_.events.begin());
    untold_.push_back(event);
  }
  if (!logged) log(LogLevel::warning, "step {}: {}", event.step, text);
  command_.run(event);
}

// Detects problems that steps do not show.
void LiveReport::look_for_trouble(const observe::LiveRun& run) {
  const observe::Diagnosis diagnosis = observe::diagnose(run);
  slow_ = diagnosis.kind == observe::Diagnosis::Kind::slow ? slow_ + 1 : 0;
  if (slow_ == 0) told_slow_ = false;
  if (slow_ >= kLongSlow && !std::exchange(told_slow_, true)) raise("slow", diagnosis.text);
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(folder_.path(), error);
  if (error) return;
  if (space.available > 2 * kLittleSpace) told_full_ = false;
  if (space.available < kLittleSpace && !std::exchange(told_full_, true))
    raise("disk", fmt::format("the disk is nearly full: {}; checkpoints may fail",
                              free_space_at(folder_.path())));
}

void LiveReport::work() {
  for (bool ends = false; !ends;) {
    {
      MutexLock lock(mutex_);
      ended_.wait_for(lock, std::chrono::duration<double>(kInterval),
                      [this]() ARTEL_REQUIRES(mutex_) { return ends_; });
      ends = ends_;
    }
    try {
      const observe::LiveRun run = record();
      if (!ends) look_for_trouble(run);  // first, because a full disk refuses the rest
      write(run);
      if (ends || history_.due(run.at)) history_.add(run);
      refused_ = false;
    } catch (const std::exception& error) {
      if (!refused_) log(LogLevel::warning, "{}; training continues", error.what());
      refused_ = true;
    }
  }
}

observe::LiveRun LiveReport::record() {
  observe::LiveRun run;
  std::vector<Member> members;
  std::shared_ptr<comm::Group> group;
  Progress now = {.at = steady_seconds()};
  {
    const MutexLock lock(mutex_);
    run = state_;
    members = members_;
    group = group_.lock();
    now.samples = samples_;
    now.ended_epochs = ended_epochs_;
    now.between_epochs = seconds_between_epochs_;
  }
  run.at = unix_seconds();
  now.step = run.step;
  progress_.push_back(now);
  if (progress_.size() > kWindow) progress_.pop_front();
  const Progress& first = progress_.front();
  if (now.at > first.at && now.step > first.step) {
    const double seconds = now.at - first.at;
    run.samples_per_second = static_cast<double>(now.samples - first.samples) / seconds;
    const double between = std::min(seconds, now.between_epochs - first.between_epochs);
    run.seconds_per_step = (seconds - between) / static_cast<double>(now.step - first.step);
  }
  const auto ended = static_cast<double>(std::max<int64_t>(1, now.ended_epochs));
  run.seconds_left = observe::seconds_left({.steps = run.steps - run.step,
                                            .epochs = run.epochs - run.epoch + 1,
                                            .seconds_per_step = run.seconds_per_step,
                                            .forecast_seconds = run.forecast_seconds,
                                            .seconds_of_epoch_end = now.between_epochs / ended});
  std::map<std::string, std::deque<Vitals>> recent;
  for (const Member& member : members) {
    run.workers.push_back(record_of(member, group.get()));
    recent[member.name] = std::move(recent_[member.name]);
  }
  recent_ = std::move(recent);  // without workers that are gone
  observe::separate_waiting(run.workers);
  return run;
}

observe::LiveWorker LiveReport::record_of(const Member& member, comm::Group* group) {
  observe::LiveWorker worker = {
      .name = member.name, .host = member.host, .process = member.process, .server = member.server};
  std::optional<Vitals> vitals;
  if (group) {
    const comm::PeerStatus status = group->status(member.rank);
    worker.process = status.process > 0 ? status.process : member.process;
    worker.silent_seconds = status.silent_seconds;
    worker.doing = status.phase;
    vitals = vitals_from(status.vitals);
  }
  if (member.rank == 0) {
    vitals = own_.now();
    worker.silent_seconds = 0;
    if (worker.doing.empty()) worker.doing = fmt::format("step {}", vitals->step + 1);
  }
  if (!vitals) return worker;
  worker.step = vitals->step;
  worker.lanes = vitals->lanes;
  worker.cores = static_cast<int>(vitals->cores);
  worker.memory_bytes = vitals->memory_bytes;
  worker.device_memory_bytes = vitals->device_memory_bytes;
  worker.mesh = to_string(vitals->mesh);
  worker.stage = static_cast<int>(vitals->mesh.stage);
  std::deque<Vitals>& recent = recent_[member.name];
  // A worker that was started again counts from zero.
  if (!recent.empty() &&
      (vitals->at < recent.back().at || vitals->training < recent.back().training))
    recent.clear();
  if (recent.empty() || vitals->at > recent.back().at) recent.push_back(*vitals);
  if (recent.size() > kWindow) recent.pop_front();
  set_rates(recent.front(), recent.back(), worker);
  return worker;
}

// Not synced: after a crash of the machine, live data is worthless.
void LiveReport::write(const observe::LiveRun& run) {
  const std::filesystem::path path = folder_.live();
  std::filesystem::path fresh = path;
  fresh += ".new";
  std::ofstream file(fresh, std::ios::binary | std::ios::trunc);
  file << observe::to_json(run) << '\n';
  file.close();
  std::error_code error;
  if (file) std::filesystem::rename(fresh, path, error);
  require(file && !error, ErrorKind::io, "[{}] cannot be written", path.string());
}

}  // namespace artel
