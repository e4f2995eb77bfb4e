// What worker 0 tells those who look from outside: live.json, written about once a second by a
// thread of its own, workers.jsonl with where the time of each worker went
// (observe/live_history.h), and alerts: what people should know of. It reads what all workers say
// about themselves (cluster/vitals.h); nobody waits for it.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "artel/cluster/cluster.h"
#include "artel/cluster/vitals.h"
#include "artel/observe/live.h"
#include "artel/observe/live_history.h"
#include "artel/observe/loss_watch.h"
#include "artel/run/event_command.h"
#include "artel/run/run_folder.h"
#include "artel/train/trainer.h"

namespace artel {

// What a worker says about itself after a step; `cores` are those it may use.
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
  // What has happened since the last call, for metrics.jsonl.
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
    int64_t step = 0, samples = 0;
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
  // Of the thread of the steps alone.
  observe::LossWatch loss_;
  bool begun_ = false;  // there was a membership before
  // Of the thread alone.
  std::map<std::string, std::deque<Vitals>> recent_;  // by name
  std::deque<Progress> progress_;
  int slow_ = 0;  // records in a row with a worker that is far slower
  bool told_slow_ = false, told_full_ = false;

  mutable std::mutex mutex_;  // protects what follows
  std::condition_variable ended_;
  bool ends_ = false;
  std::weak_ptr<comm::Group> group_;  // never kept: see Membership
  std::vector<Member> members_;
  observe::LiveRun state_;  // without its workers
  int64_t samples_ = 0;
  std::vector<observe::LiveEvent> untold_;  // that metrics.jsonl does not have yet

  std::thread thread_;
};

}  // namespace artel
