// A rank's control connection: the rendezvous, the signs of life of all ranks, and the first cause
// when the group fails. Used by transports that have no common memory.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "artel/base/mutex.h"
#include "artel/comm/connection/stream.h"
#include "artel/comm/control/hub.h"
#include "artel/comm/control/wire.h"
#include "artel/comm/options.h"
#include "artel/comm/transports/transport.h"

namespace artel::comm::control {

struct ControlOptions {
  std::string address;  // of rank 0, HOST:PORT
  std::string token;
  bool encrypt = false;
  int rank = 0;  // kAnyRank: 0 for the process that can listen at the address, the others in the
                 // order of arrival; kAnyServer: likewise, for servers
  int size = 1;
  int servers = 0;        // the last ranks
  std::string door = {};  // where newcomers find this rank when the run is under way
  double patience = 0;  // seconds of silence after which a rank counts as dead; TCP gives up after
                        // twice as many. 0: never
  Deadline deadline = Deadline::after(60);
  std::function<bool(int rank)> is_vital = {};  // for the hub
  // Called periodically while waiting for the ranks. May throw to end the wait.
  std::function<void()> meanwhile = {};
  std::function<std::string()> vitals = {};  // see GroupOptions
};

// Options for a transport whose ranks meet at an address.
ControlOptions control_options(const GroupOptions& options);

class Control {
 public:
  // Rank 0 also starts the hub, unless it is given one. Throws if rank 0 cannot be reached or
  // refuses this rank, and if the process at the address does not know the token. Throws UnderWay
  // if all ranks have already met and have doors.
  explicit Control(const ControlOptions& options, std::unique_ptr<Hub> hub = nullptr);
  ~Control();
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  int rank() const { return options_.rank; }
  // The address of this machine through which it reaches rank 0.
  std::string local_address() const;

  // Gives `blob` to all ranks and returns the blobs of all, once all have arrived. Each call
  // is another round, in which all ranks take part; none after `watch`. Throws if rank 0 refuses
  // this rank, or at the deadline.
  std::vector<Member> exchange(std::string blob);

  // Starts a thread that watches the connection. It calls `tick` ten times a second, and at once
  // when the group has failed.
  void watch(std::function<void()> tick);

  void set_phase(std::string_view phase);
  PeerStatus status(int peer);
  void abort(ErrorKind kind, std::string_view cause) noexcept;
  bool failed() const { return failed_; }
  void throw_if_failed();
  // After the connection to a peer has broken: waits a moment to learn why. Throws the failure of
  // the group, or returns whether the peer has left it in good order.
  bool explain_loss(int peer);

 private:
  void introduce();
  void receive_rank();
  std::optional<Frame> next_frame(double seconds);
  void work();
  void handle(const Frame& frame);
  void fail_with(Failure failure);
  void send(FrameType type, std::string body);

  ControlOptions options_;
  std::unique_ptr<Hub> hub_;
  Stream stream_;
  FrameReader reader_;
  std::vector<Member> members_;
  bool hub_left_ = false;  // of the thread alone

  Mutex mutex_;  // guards the members below
  std::vector<Sign> news_ ARTEL_GUARDED_BY(mutex_);
  std::vector<std::string> vitals_ ARTEL_GUARDED_BY(mutex_);  // by rank; at rank 0
  Clock::time_point news_time_ ARTEL_GUARDED_BY(mutex_);
  std::string phase_ ARTEL_GUARDED_BY(mutex_);
  Failure failure_ ARTEL_GUARDED_BY(mutex_);
  std::atomic<bool> failed_{false};
  std::atomic<bool> stopping_{false};
  Mutex sending_;

  std::function<void()> tick_;
  std::thread thread_;
};

}  // namespace artel::comm::control
