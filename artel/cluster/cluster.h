// The workers of a run: one, or all those the launcher started.
//
//   artel::Cluster workers(argc, argv);  // under mpirun, srun or `artel launch`; else this one
//   if (workers.is_server()) return workers.serve();
//   artel::log(artel::LogLevel::info, "worker {} of {}", workers.rank(), workers.size());
//
// A launcher tells each worker its place in the environment: `artel train -n 4` and `artel launch`
// through ARTEL_* variables, mpirun and srun through their own. User code does not see the
// difference. With parameter servers, the launcher's last processes are servers, which call
// `serve`; the others are the workers.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "artel/base/error.h"
#include "artel/base/time.h"
#include "artel/cluster/membership.h"

namespace artel {

namespace comm::control {
struct Knock;
struct Roster;
}  // namespace comm::control

class Door;
class VitalSigns;

// How one membership followed another.
struct MembershipChange {
  struct Gone {
    comm::control::Participant worker;
    std::string why;  // "ended", "left", "did not answer for 20 s, last seen in step 7"
  };
  std::vector<Gone> gone = {};
  std::vector<comm::control::Participant> came = {};
  bool rejoined = false;  // this worker had been given up by the others, and is a newcomer now
  double seconds = 0;     // until they had found each other
};

class Cluster {
 public:
  // One worker: this process.
  Cluster();
  // As the launcher's environment variables say; one worker without a launcher.
  Cluster(int argc, char** argv);
  // Returns when all workers and servers have joined; or, with `doors` or where the run turns out
  // to be under way, at once: see `outside`.
  explicit Cluster(const comm::GroupOptions& options);
  ~Cluster();
  Cluster(Cluster&&) noexcept;

  int rank() const { return membership_.rank(); }
  int size() const { return membership_.size(); }
  // The cores that this worker may use: those given to all workers of its machine, shared evenly.
  int cores() const { return cores_[static_cast<size_t>(rank())]; }
  // The workers as they are now; whoever outlives a call of `reform` keeps a copy.
  const Membership& membership() const { return membership_; }
  // Their group, for a call; nothing for one worker.
  comm::Group* group() { return membership_.group.get(); }

  // After the group has failed: forms the next one with the workers that are left, in the order of
  // their ranks, so that worker 0 is again one of them, and with the newcomers that were accepted.
  // All of them make this call; each wait in it has a deadline. Throws `cause` again if that
  // happens several times in a row though nothing has changed and this worker has not `progressed`
  // since, and where workers cannot meet again: with MPI, if `elastic` is off. A worker without
  // which the others have gone on joins them again, like a newcomer. Servers take part.
  MembershipChange regroup(const Error& cause, bool progressed);

  // Whether this worker is a newcomer to a run that is under way, and not part of it yet: one
  // worker with rank 0 and no group.
  bool outside() const { return outside_; }
  // What newcomers must say to be let in, word for word, and what this one says: one fact a line.
  void introduce(std::string facts) { introduction_ = std::move(facts); }
  // Returns when this newcomer is part of the run, which it may be after the others' next step.
  void enter();
  // Between two steps, on worker 0: whether newcomers wait who may enter, given that there can be
  // at most so many workers. Those who may not are told why. Costs nothing if there are none.
  bool accepts_newcomers(int most);
  // Breaks the group up, so that all members call `regroup`: throws what they will get.
  [[noreturn]] void invite();
  // The same where all members know that newcomers are to be let in, and make this call after the
  // same step: nobody has begun the next one.
  [[noreturn]] void receive_newcomers();
  // Whether somebody wants this worker to leave (`artel leave`).
  bool dismissed() const;
  // After its last step: tells the others that this worker leaves, so that they go on at once. It
  // is not part of the run any more.
  void leave();
  // Whether there are fewer workers than the run needs (GroupOptions::least).
  bool too_few() const { return elastic() && size() < options_.least; }
  // Between two steps, all workers call it if there are too few. `need` says for what: "the run
  // needs 3". Throws what makes them call `regroup` when newcomers wait, and an error when they
  // have waited for too long; returns when `stop` says so (on worker 0).
  void wait_for_newcomers(int most, const std::string& need, const std::function<bool()>& stop);
  void wait_for_newcomers(int most, const std::function<bool()>& stop);
  // Notes after which step the worker at a place was lost: whoever is started in its stead brings
  // that along (Participant::after_step).
  void note_loss(int place, int64_t step) { lost_after_[place] = step; }
  const comm::GroupOptions& options() const { return options_; }
  // Whether they can meet again.
  bool elastic() const { return door_ != nullptr; }

  // From now on this worker trains with these ones only: ranks of the present membership, its own
  // among them, which become ranks 0, 1, ... in this order. Each of them makes this call with the
  // same list, between two steps or after an error; the others need not, for they may be dead. The
  // previous group may no longer work. For workers of one machine (shm), without servers; with
  // others it throws.
  void reform(const std::vector<int>& members);

  // Runs the body. If it throws, the other workers learn what happened and stop, too.
  void attempt(const std::function<void()>& body);

  // The number of parameter servers with which the run began.
  int servers() const { return servers_; }
  bool is_server() const { return is_server_; }
  // What a server does until all workers have left, with whoever is there.
  void serve();

  // What this process says about itself, which worker 0 hears twice a second.
  VitalSigns& vitals() { return *vitals_; }

  // "worker 2 on host n07, 4 cores" for each worker.
  std::vector<std::string> members() const;

 private:
  void connect(const comm::GroupOptions& options);
  void take_group(std::shared_ptr<comm::Group> all, int servers);
  comm::Group& everybody() const;
  void open_door();
  void exchange_doors();
  void stay_outside(std::vector<std::string> doors);
  void take(const comm::control::Roster& roster);
  void announce();
  void listen_at_known_port();
  std::map<int, std::string> meet_again(Deadline deadline);
  [[noreturn]] static void fail_without_servers(const MembershipChange& change);
  void note_missed(const comm::control::Roster& roster);
  comm::control::Participant own_card() const;
  std::string place_for_a_group() const;
  void form_group(const std::string& address, const std::function<void()>& meanwhile);
  std::string objection_to(const comm::control::Knock& newcomer, bool room) const;
  void enter_once();
  // Gives up a membership that goes on without this process, to enter it anew.
  void step_outside();
  MembershipChange rejoin(const Error& cause);
  void log_change(const MembershipChange& change, const Error& cause) const;
  void share_cores();
  void count_own_cores();

  std::shared_ptr<VitalSigns> vitals_;
  comm::GroupOptions options_;  // of the present group
  std::vector<int> cores_;      // of each worker
  int servers_ = 0;
  bool is_server_ = false;
  Membership membership_;
  int number_ = 0;              // of this worker in the run
  std::unique_ptr<Door> door_;  // null: workers cannot meet again
  int in_vain_ = 0;             // groups that broke in a row, though nothing had changed
  bool outside_ = false;
  std::string introduction_;
  std::set<int64_t> accepted_;         // newcomers at the door
  std::set<std::string> admitted_;     // by their doors, while the group with them is formed
  std::map<std::string, int> missed_;  // how often it was formed without them after all
  std::map<int, int64_t> lost_after_;  // by place
  std::string meeting_place_;          // of the first group
  Clock::time_point next_look_{};      // whether somebody listens there
};

}  // namespace artel
