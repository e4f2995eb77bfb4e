#include "artel/cluster/cluster.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <set>
#include <span>
#include <string>
#include <system_error>
#include <thread>

#include "artel/base/error.h"
#include "artel/base/host_name.h"
#include "artel/base/log.h"
#include "artel/base/lost_device.h"
#include "artel/base/plural.h"
#include "artel/base/random.h"
#include "artel/base/text.h"
#include "artel/cluster/admission.h"
#include "artel/cluster/core_counts.h"
#include "artel/cluster/cut_paths.h"
#include "artel/cluster/departure.h"
#include "artel/cluster/door.h"
#include "artel/cluster/entrance.h"
#include "artel/cluster/launcher.h"
#include "artel/cluster/regrouping.h"
#include "artel/cluster/token.h"
#include "artel/cluster/vitals.h"
#include "artel/cluster/worker_name.h"
#include "artel/comm/connection/handshake.h"
#include "artel/comm/transports/transports.h"
#include "artel/ps/server.h"

namespace artel {
namespace {

using comm::meeting_of;
using comm::control::Endpoint;
using comm::control::name_of;
using comm::control::Participant;
using comm::control::Roster;

// Default patience at a door, in seconds of silence.
constexpr double kPatience = 20;
// Logs once, after a few seconds, whether this worker waits for the others or for a listener.
std::function<void()> notice_of_waiting(const std::string& address, double timeout) {
  constexpr double kSecondsUntil = 3, kSecondsToAnswer = 1;
  return [=, due = Deadline::after(kSecondsUntil), told = false]() mutable {
    if (told || !due.passed()) return;
    told = true;
    const Endpoint place = comm::control::parse_endpoint(address);
    const comm::control::Reached reached = comm::control::reach(place, kSecondsToAnswer);
    if (reached.socket.get() >= 0)
      return log(LogLevel::info, "waiting at {} for the other workers, up to {:g} s", address,
                 timeout);
    log(LogLevel::warning,
        "{} at {}: waiting up to {:g} s for worker 0 (cluster.join_timeout); to join a running "
        "training, use port {} of any of its machines",
        reached.refused ? "nobody listens" : "no answer", address, timeout, place.port);
  };
}

// The numeric address of the rendezvous, so that the training thread never waits for a name server.
// Empty without a rendezvous, or if this machine cannot resolve its name.
std::string numeric_place(const std::string& address) try {
  return to_string(comm::control::resolved(comm::control::parse_endpoint(address)));
} catch (const Error&) {
  return {};
}

bool is_lack_of_memory(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return true;
  const auto* const failed = dynamic_cast<const std::system_error*>(&error);
  // The error codes of a thread that could not be started.
  return failed != nullptr && (failed->code() == std::errc::resource_unavailable_try_again ||
                               failed->code() == std::errc::not_enough_memory);
}

}  // namespace

Cluster::Cluster()
    : vitals_(std::make_shared<VitalSigns>()),
      cores_{own_core_count()},
      admission_(std::make_unique<Admission>()) {}

Cluster::Cluster(int, char**) : Cluster() {
  if (const std::optional<comm::GroupOptions> options = launched_group()) connect(*options);
}

Cluster::Cluster(const comm::GroupOptions& options) : Cluster() { connect(options); }

void Cluster::connect(const comm::GroupOptions& options) {
  options_ = options;
  options_.encrypt =
      options.encrypt && meeting_of(options) != comm::Meeting::name;  // nothing leaves this machine
  options_.vitals = [vitals = vitals_] { return to_bytes(vitals->now()); };
  servers_ = options.servers;
  // Newcomers may connect as soon as the group has formed.
  if (options.elastic && meeting_of(options) != comm::Meeting::launcher) open_door();
  if (door_ && meeting_of(options) != comm::Meeting::name) {
    meeting_place_ = numeric_place(options.address);
    paths_ = std::make_shared<CutPaths>(comm::RunSecret(options_.token, options_.encrypt));
    options_.watch.is_cut = [paths = paths_,
                             seconds = cut_seconds(patience())](const comm::PeerStatus& peer) {
      return paths->is_cut(peer, seconds);
    };
  }
  // A newcomer that joins by a run folder does not know the size of the run.
  is_server_ =
      servers_ > 0 && (options.rank == comm::control::kAnyServer ||
                       (options.size > servers_ && options.rank >= options.size - servers_));
  if (!options.doors.empty()) return stay_outside(options.doors);
  std::shared_ptr<comm::Group> all;
  try {
    comm::GroupOptions first = options_;
    if (meeting_of(options) == comm::Meeting::address)
      first.while_joining = notice_of_waiting(options.address, options.join_timeout);
    all = std::make_shared<comm::Group>(comm::Group::connect(first));
  } catch (const comm::control::UnderWay& run) {
    return stay_outside(run.doors);
  } catch (const comm::WrongToken& error) {
    // Only this worker knows the source of its token.
    if (const std::string advice = token_advice(); !advice.empty())
      fail(ErrorKind::invalid_argument, "{}: {}; {}", host_name(), error.what(), advice);
    throw;
  }
  // An MPI library that does not recognise its launcher gives each worker a world of its own.
  require(all->size() == options.size, ErrorKind::communication,
          "[cluster] workers: got {} through {}, expected the {} that were started; try mpirun, or "
          "srun "
          "--mpi=pmix",
          all->size(), all->transport(), options.size);
  const int workers = all->size() - servers_;
  require(workers >= 1, ErrorKind::invalid_argument,
          "cluster.servers: got {} of {} processes, expected at least one worker as well", servers_,
          all->size());
  is_server_ = all->rank() >= workers;
  take_group(std::move(all), servers_);
  if (door_ || (servers_ > 0 && meeting_of(options) != comm::Meeting::launcher)) exchange_doors();
}

// The last ranks are servers.
void Cluster::take_group(std::shared_ptr<comm::Group> all, int servers) {
  if (servers_ == 0) {
    membership_.group = std::move(all);
  } else {
    membership_.world = std::move(all);
    const bool serves = membership_.world->rank() >= membership_.world->size() - servers;
    membership_.group = std::make_shared<comm::Group>(membership_.world->split(serves ? 1 : 0));
  }
  cores_ = core_counts(*membership_.group);
}

// Workers and servers.
comm::Group& Cluster::everybody() const {
  return membership_.world ? *membership_.world : *membership_.group;
}

void Cluster::stay_outside(std::vector<std::string> doors) {
  require(door_ != nullptr, ErrorKind::unsupported,
          "[cluster] this worker cannot join a running training with cluster.elastic = false");
  cores_ = {own_core_count()};
  options_.doors = std::move(doors);
  outside_ = true;
}

// Opens this worker's door.
void Cluster::open_door() {
  if (meeting_of(options_) == comm::Meeting::name) {
    const std::string name = fmt::format("@artel/{}/{}", options_.address, options_.rank);
    try {
      if (options_.doors.empty())
        door_ = std::make_unique<Door>(Endpoint{.host = name}, options_.token);
    } catch (const Error&) {
      // Another run uses this name. A run needs it only while it forms.
    }
    if (!door_)
      door_ = std::make_unique<Door>(Endpoint{.host = "@artel/" + random_token()}, options_.token);
  } else {
    const std::string towards = options_.doors.empty() ? options_.address : options_.doors.front();
    require_token(comm::control::parse_endpoint(towards), options_.token);
    const std::string host = options_.interface.empty()
                                 ? address_towards(comm::control::parse_endpoint(towards))
                                 : comm::control::address_of_interface(options_.interface);
    door_ = std::make_unique<Door>(Endpoint{.host = host}, options_.token, options_.encrypt);
  }
  options_.door = door_->address();
}

// Exchanges the addresses of all doors. If one member has no door, workers cannot regroup.
void Cluster::exchange_doors() {
  comm::Group& all = everybody();
  number_ = all.rank();
  struct Card {
    int32_t process, place;
    std::array<char, 120> door;
  };
  Card own{getpid(), options_.place, {}};
  const std::string door = door_ ? door_->address() : "";
  require(door.size() < own.door.size(), ErrorKind::internal,
          "[cluster] door: got '{}', expected at most {} characters", door, own.door.size() - 1);
  std::copy(door.begin(), door.end(), own.door.begin());
  std::vector<Card> cards(static_cast<size_t>(all.size()));
  all.all_gather(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(cards)), {},
                 {.label = "doors"});
  if (std::ranges::any_of(cards, [](const Card& card) { return card.door[0] == 0; }))
    return door_.reset();
  const std::vector<std::string> hosts = all.hosts();
  const int workers = all.size() - servers_;
  for (int rank = 0; rank < all.size(); ++rank)
    (rank < workers ? membership_.members : membership_.servers)
        .push_back({.number = rank,
                    .host = hosts[rank],
                    .process = cards[rank].process,
                    .door = cards[rank].door.data(),
                    .place = cards[rank].place,
                    .server = rank < workers ? -1 : rank - workers});
  membership_.next_number = all.size();
  if (paths_) paths_->watch(membership_.everybody(), number_);
  announce();
}

double Cluster::patience() const {
  return options_.watch.patience > 0 ? options_.watch.patience : kPatience;
}

void Cluster::fail_alone(ErrorKind kind, std::string_view happened) {
  const std::string cause =
      fmt::format("worker {} (process {} on host {}) {}", number_, getpid(), host_name(), happened);
  if (elastic()) tell_launcher("apart");
  if (elastic() && group())
    everybody().dissolve(cause);
  else if (group())
    group()->abort(cause);
  fail(kind, "[cluster] {}", cause);
}

void Cluster::attempt(const std::function<void()>& body) {
  try {
    body();
  } catch (const std::exception& error) {
    if (is_lack_of_memory(error)) fail_alone(ErrorKind::memory, "ran out of memory");
    const auto* const lost = dynamic_cast<const LostDevice*>(&error);
    if (lost && elastic())
      fail_alone(lost->kind(), fmt::format("lost its device: {}", error.what()));
    // MPI may end this process before another one can report the cause.
    if (group() && group()->transport() == "mpi" && rank() == 0)
      log(LogLevel::warning,
          "{}; MPI ends the job; continue from the last checkpoint with --resume", error.what());
    if (group()) group()->abort(error.what(), worker_name(*group(), rank()));
    throw;
  }
}

void Cluster::serve() {
  ps::Holdings kept;
  introduce(server_introduction());
  if (outside_) enter();
  std::atomic<bool> pushed = false;
  comm::Traffic before;  // traffic of earlier memberships
  while (true) try {
      membership_.world->set_phase("serving");
      const int servers = door_ ? static_cast<int>(membership_.servers.size()) : servers_;
      ps::Server(membership_.world,
                 {.workers = membership_.world->size() - servers,
                  .on_push =
                      [&](int64_t staleness) {
                        pushed = true;
                        vitals_->count_push(staleness);
                        comm::Traffic traffic = before;
                        traffic += membership_.world->traffic();
                        vitals_->set({.sent_bytes = traffic.sent_bytes,
                                      .received_bytes = traffic.received_bytes});
                      }},
                 &kept)
          .run();
      return;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::communication) throw;
      before += membership_.world->traffic();
      try {
        // The others had given up this server, so its state is out of date.
        if (regroup(error, pushed.exchange(false)).rejoined) kept.clear();
      } catch (const Error& ended) {
        if (!outside_) throw;
        // The others continue without this server.
        return log(LogLevel::info, "{}", ended.what());
      }
    }
}

Cluster::~Cluster() = default;
Cluster::Cluster(Cluster&&) noexcept = default;

std::vector<std::string> Cluster::members() const {
  const comm::Group* const group = membership_.group.get();
  const std::vector<std::string> hosts = group ? group->hosts() : std::vector<std::string>{""};
  std::vector<std::string> lines;
  for (int rank = 0; rank < size(); ++rank)
    lines.push_back(fmt::format("worker {}{}{}, {}", rank, group ? " on host " : "", hosts[rank],
                                counted(cores_[rank], "core")));
  return lines;
}

}  // namespace artel
