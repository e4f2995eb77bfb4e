// The transition of a cluster from one membership to the next, when workers join, leave, or die.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <string>

#include "artel/base/error.h"
#include "artel/base/host_name.h"
#include "artel/base/log.h"
#include "artel/base/plural.h"
#include "artel/base/random.h"
#include "artel/cluster/admission.h"
#include "artel/cluster/cluster.h"
#include "artel/cluster/core_counts.h"
#include "artel/cluster/cut_paths.h"
#include "artel/cluster/departure.h"
#include "artel/cluster/door.h"
#include "artel/cluster/entrance.h"
#include "artel/cluster/launcher.h"
#include "artel/cluster/regrouping.h"
#include "artel/cluster/token.h"
#include "artel/cluster/worker_name.h"
#include "artel/comm/transports/transports.h"

namespace artel {
namespace {

using comm::meeting_of;
using comm::control::Endpoint;
using comm::control::name_of;
using comm::control::Participant;
using comm::control::Roster;

// Deadline, in seconds, to form the group of members that have met.
constexpr double kFormSeconds = 10;
// The last heartbeats of all members. Works for a failed group, too.
std::map<int, RegroupingOptions::Sign> signs_of(const Membership& membership) {
  std::map<int, RegroupingOptions::Sign> signs;
  if (!membership.group) return signs;
  const comm::Group& group = membership.world ? *membership.world : *membership.group;
  const std::vector<Participant> all = membership.everybody();
  for (size_t peer = 0; peer < all.size(); ++peer) {
    const comm::PeerStatus status = group.status(static_cast<int>(peer));
    signs[all[peer].number] = {status.silent_seconds, status.phase};
  }
  return signs;
}

}  // namespace

// Throws if this worker cannot reach a member of the group that is being formed.
void Cluster::check_paths(double seconds) const {
  if (!paths_) return;
  paths_->look();
  const std::set<int> cut = paths_->unanswered(seconds);
  for (const Participant& member : membership_.everybody())
    require(!cut.contains(member.number), ErrorKind::communication,
            "[cluster] worker {} on host {} cannot reach {} on host {} at {}: no answer for {:g} "
            "s; check the network between these hosts",
            number_, host_name(), name_of(member), member.host, member.door, seconds);
}

// Members that do not answer this worker although worker 0 hears from them.
std::set<int> Cluster::unreachable() const {
  if (!paths_) return {};
  std::map<int, double> silent;
  for (const auto& [number, sign] : signs_of(membership_)) silent[number] = sign.silent_seconds;
  // Members started to wait at different times.
  constexpr double kShare = 0.75;
  return paths_->unanswered(kShare * cut_seconds(patience()), silent);
}

// Applies the agreed membership before its group is formed.
void Cluster::take(const Roster& roster) {
  membership_ = {.generation = roster.generation,
                 .group = nullptr,
                 .members = {},
                 .next_number = roster.next_number};
  for (const Participant& member : roster.members)
    (member.server < 0 ? membership_.members : membership_.servers).push_back(member);
  if (paths_) paths_->watch(membership_.everybody(), number_);
}

// Announces the membership to the door and the launcher.
void Cluster::announce() {
  const std::vector<Participant> everybody = membership_.everybody();
  door_->set_membership(membership_.generation, everybody, number_, membership_.next_number);
  listen_at_known_port();
  std::string news = "met " + door_->address();
  for (const Participant& member : everybody) news += "," + member.door;
  for (const Participant& member : everybody)
    if (member.number == number_) news += " " + name_of(member);
  tell_launcher(news);
}

// Newcomers know the port at which the run started. One worker per machine listens at that port and
// redirects them to worker 0.
void Cluster::listen_at_known_port() {
  if (meeting_place_.empty()) return;
  const Endpoint known = comm::control::parse_endpoint(meeting_place_);
  const std::string own = comm::control::parse_endpoint(door_->address()).host;
  if (!door_->open_also_at({.host = own, .port = known.port})) door_->open_also_at(known);
}

// Retries if a member is lost while the group with this newcomer is formed.
void Cluster::enter() {
  constexpr int kMostTries = 5;
  constexpr double kCutWhileForming = 0.8 * kFormSeconds;
  for (int tries = 1;; ++tries) try {
      enter_once();
      outside_ = false;
      return announce();
    } catch (const Error& error) {
      if (membership_.members.empty() || tries == kMostTries) throw;
      log(LogLevel::debug, "worker {}: {}", number_, error.what());
      // With a cut path, each retry would make the others wait.
      check_paths(std::min(patience(), kCutWhileForming));
      step_outside();
    }
}

void Cluster::enter_once() {
  Entrance entrance({.doors = options_.doors,
                     .token = options_.token,
                     .encrypt = options_.encrypt,
                     .request = {.purpose = comm::control::DoorRequest::Purpose::join,
                                 .generation = -1,
                                 .self = {.host = host_name(),
                                          .process = getpid(),
                                          .door = door_->address(),
                                          .place = options_.place,
                                          .server = is_server_ ? 0 : -1},
                                 .introduction = admission_->introduction()},
                     .patience = patience(),
                     .join_timeout = options_.join_timeout});
  const Roster roster = entrance.wait();
  for (const Participant& member : roster.members)
    if (member.door == door_->address()) number_ = member.number;
  take(roster);
  form_group(roster.address, [&] {
    entrance.check();
    check_paths(patience());
  });
}

bool Cluster::accepts_newcomers(int most) {
  if (!door_ || rank() != 0) return false;
  // The first group may have occupied the port until now.
  if (membership_.generation > 0 && Clock::now() >= next_look_) {
    listen_at_known_port();
    next_look_ = Clock::now() + std::chrono::seconds(1);
  }
  if (!door_->has_newcomers()) return false;
  // Members do not connect between two steps, so these guests belong to an abandoned membership.
  const std::vector<Participant> members = membership_.everybody();
  for (const Door::Guest& guest : door_->guests())
    if (std::ranges::count(members, guest.request.self.number, &Participant::number) == 0)
      door_->tell(guest.id,
                  {comm::control::FrameType::refusal,
                   fmt::format("worker {} is not part of the run", guest.request.self.number)});
  return admission_->examine(*door_, {.workers = size(),
                                      .most_workers = std::min(most, options_.most),
                                      .servers = static_cast<int>(membership_.servers.size()),
                                      .most_servers = servers_});
}

void Cluster::introduce(std::string facts) { admission_->set_introduction(std::move(facts)); }

// Tells the others the reason at once, before the caller reaches `regroup`.
void Cluster::invite() {
  const std::string cause = counted(admission_->accepted().size(), "newcomer") + " to the run";
  dissolve_group(cause);
  fail(ErrorKind::communication, "[cluster] {}", cause);
}

void Cluster::dissolve_group(const std::string& cause) {
  if (group()) everybody().dissolve(cause);
}

void Cluster::receive_newcomers() {
  fail(ErrorKind::communication, "[cluster] newcomers to the run");
}

bool Cluster::dismissed() const { return door_ && door_->dismissed(); }

void Cluster::leave() {
  announce_departure(*door_, membership_, own_card());
  tell_launcher("left");
  const std::string name = worker_name(own_card());
  dissolve_group(name + " leaves");
  log(LogLevel::info, "{} (process {}) leaves the run", name, getpid());
  membership_ = {.generation = membership_.generation, .group = nullptr};
  cores_ = {cores_.front()};
  door_.reset();
}

void Cluster::wait_for_newcomers(int most, const std::function<bool()>& stop) {
  wait_for_newcomers(most, fmt::format("the run needs {} (cluster.workers)", options_.least), stop);
}

void Cluster::wait_for_newcomers(int most, const std::string& need,
                                 const std::function<bool()>& stop) {
  if (rank() != 0) {
    // Worker 0 ends the wait by dissolving the group.
    group()->barrier({.label = "more workers", .timeout = options_.wait + options_.timeout});
    return;
  }
  if (group()) everybody().set_phase("waiting for workers");
  log(LogLevel::warning, "{} left, but {}: waiting up to {:g} s for others (cluster.wait)",
      counted(size(), "worker"), need, options_.wait);
  const Deadline deadline = Deadline::after(options_.wait);
  bool accepted = false;
  while (!(accepted = accepts_newcomers(most)) && !stop()) {
    require(
        !deadline.passed(), ErrorKind::timeout,
        "[cluster] workers: got {} for {:g} s (cluster.wait), but {}; resume the run when there "
        "are more",
        size(), options_.wait, need);
    door_->wait(0.1);
    if (group()) group()->check();
  }
  if (accepted) invite();
  if (group()) group()->barrier({.label = "more workers"});
}

// Repeats elections among the remaining members until a group has formed.
MembershipEvents Cluster::meet_again(Deadline deadline) {
  MembershipEvents met;
  const Membership last = membership_;
  std::vector<Roster> agreed;
  std::set<int> cut = unreachable();
  while (true) {
    Regrouping meeting(*door_, last,
                       {.self = own_card(),
                        .patience = patience(),
                        .deadline = deadline,
                        .signs = signs_of(last),
                        .agreed = agreed,
                        .accepted = admission_->accepted(),
                        .next_number = last.next_number,
                        .lost_after = lost_after_,
                        .address = [this] { return place_for_a_group(); },
                        .unreachable = cut});
    const Roster roster = meeting.meet();
    agreed.push_back(roster);
    for (const Roster::Change& change : roster.changes) {
      met.reasons[change.number] = change.what;
      const auto member = std::ranges::find(roster.members, change.number, &Participant::number);
      if (member != roster.members.end()) met.admitted.push_back(*member);
    }
    admission_->note_agreed(roster);
    take(roster);
    try {
      form_group(roster.address, [&] {
        meeting.check();
        check_paths(patience());
      });
      admission_->note_formed();
      announce();
      return met;
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::memory) throw std::bad_alloc();  // a retry would fail, too
      // A member was lost while the group formed. The remaining members try again.
      if (paths_) cut = paths_->unanswered(patience());
      membership_ = last;
      door_->dismiss();
      if (deadline.passed()) throw;
      log(LogLevel::debug, "worker {}: {}", number_, error.what());
    }
  }
}

MembershipChange Cluster::regroup(const Error& cause, bool progressed) {
  if (!door_) throw cause;
  dissolve_group(cause.what());  // others may not have noticed the failure
  const Clock::time_point begin = Clock::now();
  const std::vector<Participant> before = membership_.everybody();
  MembershipEvents met;
  try {
    met = meet_again(Deadline::after(options_.timeout));
  } catch (const CutOff& error) {
    leave_cut_off(error);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::cancelled) throw;
    return rejoin(error);
  }
  MembershipChange change = change_between(before, membership_.everybody(), met);
  change.seconds = seconds_between(begin, Clock::now());
  // If no member has changed, the group failed for another reason, which may be transient.
  constexpr int kMostFutile = 3;
  // A newcomer that was admitted but never came is not the members' fault.
  const bool changed = !change.gone.empty() || !change.came.empty() || !met.reasons.empty();
  futile_regroups_ = changed || progressed ? 0 : futile_regroups_ + 1;
  if (futile_regroups_ > kMostFutile) throw cause;
  require(!membership_.members.empty(), ErrorKind::cancelled, "[cluster] no worker is left: {}",
          cause.what());
  if (servers_ > 0 && membership_.servers.empty()) fail_without_servers(change);
  if (rank() == 0 && !is_server_) {
    speak_for_the_run();
    std::string rest = fmt::format("continuing with {}", counted(size(), "worker"));
    if (servers_ > 0) rest += " and " + counted(membership_.servers.size(), "server");
    log_change(change, cause, rest);
  }
  return change;
}

void Cluster::leave_cut_off(const Error& cause) {
  announce_departure(*door_, membership_, own_card());
  tell_launcher("apart");
  speak_for_the_run();  // the others report a different error
  throw Error(cause.kind(), cause.what());
}

MembershipChange Cluster::rejoin(const Error& cause) {
  const Clock::time_point begin = Clock::now();
  log(LogLevel::warning, "{}; rejoining the run", cause.what());
  step_outside();
  enter();
  return {.rejoined = true, .seconds = seconds_between(begin, Clock::now())};
}

void Cluster::step_outside() {
  std::vector<std::string> doors;
  for (const Participant& member : membership_.everybody())
    if (member.number != number_) doors.push_back(member.door);
  door_->dismiss();
  door_->set_membership(-1, {}, -1, 0);
  membership_ = {};
  stay_outside(std::move(doors));
}

Participant Cluster::own_card() const {
  for (const Participant& each : membership_.everybody())
    if (each.number == number_) return each;
  fail(ErrorKind::internal, "[cluster] {} is not part of its membership", number_);
}

// The rendezvous address of a group led by this worker.
std::string Cluster::place_for_a_group() const {
  if (meeting_of(options_) == comm::Meeting::name) return "artel-" + random_token();
  return to_string(
      comm::control::free_endpoint(comm::control::parse_endpoint(door_->address()).host));
}

// Forms the group of the present members.
void Cluster::form_group(const std::string& address, const std::function<void()>& meanwhile) {
  comm::GroupOptions options = options_;
  options.address = address;
  const std::vector<Participant> all = membership_.everybody();
  options.size = static_cast<int>(all.size());
  options.servers = static_cast<int>(membership_.servers.size());
  options.rank = 0;
  while (all[static_cast<size_t>(options.rank)].number != number_) ++options.rank;
  options.join_timeout = std::min(options.join_timeout, kFormSeconds);
  options.while_joining = meanwhile;
  std::shared_ptr<comm::Group> formed;
  if (options.size > 1) formed = std::make_shared<comm::Group>(comm::Group::connect(options));
  cores_ = {cores_.front()};
  if (formed) take_group(std::move(formed), options.servers);
}

void Cluster::reform(const std::vector<int>& members) {
  const auto own = std::find(members.begin(), members.end(), rank());
  require(own != members.end(), ErrorKind::invalid_argument,
          "[cluster] members: got {}, expected this worker, {}, among them",
          fmt::join(members, ", "), rank());
  for (const int member : members)
    require(member >= 0 && member < size() && std::ranges::count(members, member) == 1,
            ErrorKind::invalid_argument,
            "[cluster] members: got {}, expected ranks from 0 to {}, each once",
            fmt::join(members, ", "), size() - 1);
  require(door_ && group() && group()->transport() == "shm" && servers_ == 0,
          ErrorKind::unsupported,
          "[cluster] a new group: got {}, expected workers of one machine by shm without servers; "
          "try a new run from the last checkpoint",
          !group()       ? "one worker"
          : servers_ > 0 ? "servers"
                         : group()->transport());
  // Groups of disjoint members need different addresses that no earlier group has used.
  comm::GroupOptions options = options_;
  options.address = fmt::format(
      "artel-{:016x}",
      mix_key({hash_name(options_.address), static_cast<uint64_t>(membership_.generation),
               static_cast<uint64_t>(members.front())}));
  options.rank = static_cast<int>(own - members.begin());
  options.size = static_cast<int>(members.size());
  Membership next = {.generation = membership_.generation + 1,
                     .group = nullptr,
                     .members = {},
                     .next_number = membership_.next_number};
  for (const int member : members) next.members.push_back(membership_.members[member]);
  if (options.size > 1) next.group = std::make_shared<comm::Group>(comm::Group::connect(options));
  // If this throws, the cluster is unchanged.
  const int cores_before = cores();
  options_ = std::move(options);
  membership_ = std::move(next);
  cores_ = {cores_before};
  door_->set_membership(membership_.generation, membership_.members, number_,
                        membership_.next_number);
  if (group()) cores_ = core_counts(*group());
}

}  // namespace artel
