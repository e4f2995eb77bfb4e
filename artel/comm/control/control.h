// A rank's control connection: the rendezvous, the signs of life of all ranks, and the first cause
// when the group fails. Used by transports that have no common memory.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "artel/comm/control/hub.h"
#include "artel/comm/control/wire.h"
#include "artel/comm/transport.h"

namespace artel::comm::control {

struct ControlOptions {
  std::string address;  // of rank 0, HOST:PORT
  std::string token;
  int rank = 0;  // kAnyRank: 0 for whoever can listen at the address, then in the order of arrival;
                 // kAnyServer: likewise, for servers
  int size = 1;
  int servers = 0;  // the last ranks
  Deadline deadline = Deadline::after(60);
  std::function<bool(int rank)> is_vital = {};  // for the hub
};

class Control {
 public:
  // Rank 0 also starts the hub, unless it is given one. Throws if rank 0 cannot be reached.
  explicit Control(const ControlOptions& options, std::unique_ptr<Hub> hub = nullptr);
  ~Control();
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  int rank() const { return options_.rank; }
  // The address of this machine through which it reaches rank 0.
  std::string local_address() const;

  // Gives `blob` to all ranks and returns those of all, when all are there. Call it once. Throws
  // if rank 0 refuses this rank, or at the deadline.
  std::vector<Member> exchange(std::string blob);

  // From now on a thread of its own watches the connection. It calls `tick` ten times a second, and
  // at once when the group has failed.
  void watch(std::function<void()> tick);

  void set_phase(std::string_view phase);
  PeerStatus status(int peer);
  void abort(ErrorKind kind, std::string_view cause) noexcept;
  bool failed() const { return failed_; }
  void throw_if_failed();
  // After the connection to a peer broke: waits a moment for the news of why. Throws the failure of
  // the group, or returns whether the peer has left it in good order.
  bool explain_loss(int peer);

 private:
  void receive_rank();
  std::optional<Frame> next_frame(double seconds);
  void work();
  void handle(const Frame& frame);
  void fail_with(Failure failure);
  void send(FrameType type, std::string body);

  ControlOptions options_;
  std::unique_ptr<Hub> hub_;
  FileHandle socket_;
  FrameReader reader_;
  std::vector<Member> members_;

  std::mutex mutex_;  // of what follows
  std::vector<Sign> news_;
  Clock::time_point news_time_;
  std::string phase_;
  Failure failure_;
  std::atomic<bool> failed_{false};
  std::atomic<bool> stopping_{false};
  bool hub_left_ = false;
  std::mutex sending_;

  std::function<void()> tick_;
  std::thread thread_;
};

}  // namespace artel::comm::control
