// Worker 0's reports for observers: live.json, written about once a second by a separate thread;
// workers.jsonl with the time use of each worker (observe/live_history.h); and alerts. It reads the
// vitals of all workers (cluster/vitals.h). Training never waits for it.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "artel/base/mutex.h"
#include "artel/cluster/cluster.h"
#include "artel/cluster/vitals.h"
#include "artel/observe/live.h"
#include "artel/observe/live_history.h"
#include "artel/observe/loss_watch.h"
#include "artel/run/folder/run_folder.h"
#include "artel/run/report/event_command.h"
#include "artel/train/trainer.h"

namespace artel {

// A worker's vitals after a step. `cores` are the cores it may use.
Vitals vitals_of(const TrainingState& state, int cores);

class LiveReport {
 public:
  // `own` are the vital signs of this process; borrowed.
  LiveReport(const RunFolder& folder, const VitalSigns& own, const RunConfig& config);
  // Writes a last time.
  ~LiveReport();
  LiveReport(const LiveReport&) = delete;
  LiveReport& operator=(const LiveReport&) = delete;

  // From the thread of the steps, which never waits here for a disk or another worker.
  void set_membership(const Membership& membership);
  void after_step(const TrainingState& state);
  // Tells people, in all ways that there are, and in the log unless it is there already.
  void raise(const std::string& kind, const std::string& text, bool logged = false);
  // Events since the last call, for metrics.jsonl.
  std::vector<observe::LiveEvent> take_events();

 private:
  struct Member {
    std::string name, host;
    int process = 0;
    bool server = false;
    int rank = 0;  // in the group
  };
  struct Progress {
    double at = 0;
    int64_t step = 0, samples = 0, ended_epochs = 0;
    double between_epochs = 0;  // seconds of tests and checkpoints
  };

  void take_over();
  void look_for_trouble(const observe::LiveRun& run);
  void work();
  observe::LiveRun record();
  observe::LiveWorker record_of(const Member& member, comm::Group* group);
  void write(const observe::LiveRun& run);

  const RunFolder folder_;
  const VitalSigns& own_;
  observe::LiveHistory history_;
  bool refused_ = false;  // by the disk
  EventCommand command_;
  // Used only by the thread of the steps.
  observe::LossWatch loss_;
  bool begun_ = false;  // there was an earlier membership
  // Used only by the reporting thread.
  std::map<std::string, std::deque<Vitals>> recent_;  // by name
  std::deque<Progress> progress_;
  int slow_ = 0;  // records in a row with a worker that is far slower
  bool told_slow_ = false, told_full_ = false;

  mutable Mutex mutex_;  // guards the members below
  Condition ended_;
  bool ends_ ARTEL_GUARDED_BY(mutex_) = false;
  std::weak_ptr<comm::Group> group_ ARTEL_GUARDED_BY(mutex_);  // never kept: see Membership
  std::vector<Member> members_ ARTEL_GUARDED_BY(mutex_);
  observe::LiveRun state_ ARTEL_GUARDED_BY(mutex_);  // without its workers
  int64_t samples_ ARTEL_GUARDED_BY(mutex_) = 0;
  int64_t ended_epochs_ ARTEL_GUARDED_BY(mutex_) = 0;
  double seconds_between_epochs_ ARTEL_GUARDED_BY(mutex_) = 0;
  std::vector<observe::LiveEvent> untold_
      ARTEL_GUARDED_BY(mutex_);  // that metrics.jsonl does not have yet

  std::thread thread_;
};

}  // namespace artel
