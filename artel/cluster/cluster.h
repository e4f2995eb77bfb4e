// The workers of a run: this process alone, or all processes that the launcher started.
//
//   artel::Cluster workers(argc, argv);  // under mpirun, srun or `artel launch`; else this one
//   if (workers.is_server()) return workers.serve();
//   artel::log(artel::LogLevel::info, "worker {} of {}", workers.rank(), workers.size());
//
// A launcher passes each worker its place through the environment: `artel train -n 4` and `artel
// launch` in ARTEL_* variables, mpirun and srun in their own. User code does not see the
// difference. With parameter servers, the launcher's last processes are servers, which call
// `serve`; the others are workers.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "artel/base/error.h"
#include "artel/base/time.h"
#include "artel/cluster/membership.h"
#include "artel/cluster/membership_change.h"

namespace artel {

namespace comm::control {
struct Roster;
}  // namespace comm::control

class Admission;
class CutPaths;
class Door;
class VitalSigns;

class Cluster {
 public:
  // One worker: this process.
  Cluster();
  // Takes this process's place from the launcher's environment variables; one worker without a
  // launcher.
  Cluster(int argc, char** argv);
  // Returns when all workers and servers have joined. Returns at once with `doors`, or if the run
  // has already begun: see `outside`.
  explicit Cluster(const comm::GroupOptions& options);
  ~Cluster();
  Cluster(Cluster&&) noexcept;

  int rank() const { return membership_.rank(); }
  int size() const { return membership_.size(); }
  // Cores that this worker may use: its share of the cores of its machine.
  int cores() const { return cores_[static_cast<size_t>(rank())]; }
  // Its place among the workers of its machine: 0, 1, ... A newcomer has the place that its
  // launcher gave it, which is that of the worker it replaces.
  int place_on_machine() const {
    return outside_ ? std::max(0, options_.place) : membership_.place_on_machine();
  }
  // The present workers. Keep a copy across calls of `regroup` and `reform`.
  const Membership& membership() const { return membership_; }
  // The workers' group, valid until the next regrouping; null for one worker.
  comm::Group* group() { return membership_.group.get(); }

  // Forms the next group after the present one has failed. Its members are the remaining workers
  // and servers, in rank order, and the accepted newcomers. All of them make this call. Every wait
  // in it has a deadline. A worker that the others have given up rejoins as a newcomer. Throws
  // `cause` if workers cannot regroup (MPI, `elastic` off), or if groups of the same members keep
  // failing and this worker has not `progressed`.
  MembershipChange regroup(const Error& cause, bool progressed);

  // True for a newcomer that is not part of the run yet. It has rank 0 and no group.
  bool outside() const { return outside_; }
  // Sets the facts, one per line, that newcomers must share with this worker to be admitted.
  void introduce(std::string facts);
  // Enters the run. A newcomer is admitted between two steps of the others.
  void enter();
  // Worker 0 calls it between two steps. Returns true if a newcomer may enter. Newcomers that may
  // not are told why. `most` is the largest number of workers. Cheap if no newcomer waits.
  bool accepts_newcomers(int most);
  // Dissolves the group to admit the newcomers: all members get the error that this call throws,
  // and call `regroup`.
  [[noreturn]] void invite();
  // Admits newcomers that all members know of. All members make this call after the same step.
  [[noreturn]] void receive_newcomers();
  // True after `artel leave` has asked this worker to leave.
  bool dismissed() const;
  // Leaves the run after this worker's last step. The others continue at once.
  void leave();
  // True if there are fewer workers than the run needs (GroupOptions::least).
  bool too_few() const { return elastic() && size() < options_.least; }
  // Waits for newcomers. All workers call it between two steps. Throws, so that all call `regroup`,
  // when newcomers may enter; throws a timeout after GroupOptions::wait; returns when `stop` is
  // true on worker 0. `need` completes the message: "the run needs 3 (cluster.workers)".
  void wait_for_newcomers(int most, const std::string& need, const std::function<bool()>& stop);
  void wait_for_newcomers(int most, const std::function<bool()>& stop);
  // Records the step after which the worker at a launcher's place was lost. Its replacement carries
  // that step (Participant::after_step).
  void note_loss(int place, int64_t step) { lost_after_[place] = step; }
  const comm::GroupOptions& options() const { return options_; }
  // True if the workers can regroup.
  bool elastic() const { return door_ != nullptr; }

  // Continues with these ranks of the present membership only. They become ranks 0, 1, ... in this
  // order; this worker must be one of them. Each of them calls it with the same list, between two
  // steps or after an error. The others may be dead. Supports workers of one machine (shm) without
  // servers; otherwise it throws.
  void reform(const std::vector<int>& members);

  // Runs the body. If it throws, the other workers stop with the same error.
  void attempt(const std::function<void()>& body);

  // The number of parameter servers with which the run began.
  int servers() const { return servers_; }
  bool is_server() const { return is_server_; }
  // Serves parameters until all workers have left.
  void serve();

  // Live state of this process, sent to worker 0 twice a second.
  VitalSigns& vitals() { return *vitals_; }

  // "worker 2 on host n07, 4 cores" for each worker.
  std::vector<std::string> members() const;

 private:
  void connect(const comm::GroupOptions& options);
  void take_group(std::shared_ptr<comm::Group> all, int servers);
  // Breaks the current group, if any, for all members and servers and tells them the cause.
  void dissolve_group(const std::string& cause);
  comm::Group& everybody() const;
  void open_door();
  void exchange_doors();
  void stay_outside(std::vector<std::string> doors);
  void take(const comm::control::Roster& roster);
  void announce();
  void listen_at_known_port();
  MembershipEvents meet_again(Deadline deadline);
  double patience() const;
  void check_paths(double seconds) const;
  std::set<int> unreachable() const;
  [[noreturn]] void leave_cut_off(const Error& cause);
  // Ends this worker with `happened`, such as "ran out of memory". The others of an elastic
  // training continue without it.
  [[noreturn]] void fail_alone(ErrorKind kind, std::string_view happened);
  comm::control::Participant own_card() const;
  std::string place_for_a_group() const;
  void form_group(const std::string& address, const std::function<void()>& meanwhile);
  void enter_once();
  // Leaves a membership that continues without this process, to enter again.
  void step_outside();
  MembershipChange rejoin(const Error& cause);

  std::shared_ptr<VitalSigns> vitals_;
  comm::GroupOptions options_;  // of the present group
  std::vector<int> cores_;      // of each worker
  int servers_ = 0;
  bool is_server_ = false;
  Membership membership_;
  int number_ = 0;                   // of this worker in the run
  std::unique_ptr<Door> door_;       // null if workers cannot regroup
  std::shared_ptr<CutPaths> paths_;  // null if all members share a machine
  int futile_regroups_ = 0;          // consecutive regroups without a step or a change of members
  bool outside_ = false;
  std::unique_ptr<Admission> admission_;
  std::map<int, int64_t> lost_after_;  // by place
  std::string meeting_place_;          // numeric rendezvous address of the first group; "" if none
  Clock::time_point next_look_{};      // time of the next attempt to listen there
};

}  // namespace artel
