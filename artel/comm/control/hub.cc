#include "artel/comm/control/hub.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <list>
#include <optional>
#include <utility>
#include <vector>

#include "artel/base/plural.h"
#include "artel/comm/control/strangers.h"
#include "artel/comm/transports/transport.h"

namespace artel::comm::control {
namespace {

constexpr double kNewsInterval = 0.5;
// A rank that does not read (it may be stopped) misses news rather than filling our memory.
constexpr size_t kMaxUnsent = 1 << 20;

struct Connection : Link {
  using Link::Link;
  int rank = -1;               // until its hello
  std::optional<Hello> early;  // the hello of a newcomer that waits for rank 0's
};

struct Rank {
  Connection* connection = nullptr;
  bool has_blob = false;
  Member member;
  std::string door;
  Clock::time_point last_seen = Clock::now();  // or since when it is expected
  std::string phase;
  bool left = false;
};

}  // namespace

class Hub::Loop {
 public:
  explicit Loop(const HubOptions& options)
      : options_(options),
        secret_(options.token, options.encrypt),
        listener_(listen_at(options.endpoint)),
        ranks_(options.size) {
    require_token(options.endpoint, options.token);
  }

  void run() try {
    Clock::time_point next_news = Clock::now();
    while (!done()) {
      wait();
      for (Connection& connection : connections_) read(connection);
      strangers_.tidy(connections_);
      connections_.remove_if([](const Connection& connection) { return connection.closed; });
      if (complete_ && Clock::now() >= next_news) {
        spread_news();
        next_news = Clock::now() + std::chrono::milliseconds(int(kNewsInterval * 1000));
      }
      for (Connection& connection : connections_) connection.flush();
    }
  } catch (const std::exception& error) {
    // Tell all ranks why the hub ended.
    fail_group({ErrorKind::internal, fmt::format("[comm] rank 0's hub: {}", error.what())});
    for (Connection& connection : connections_) connection.flush();
  }

  // To be called when rank 0 has closed its connection, or never made one.
  void stop() { stop_at_ = Clock::now() + std::chrono::seconds(1); }

  uint16_t port() const { return port_of(listener_.get()); }

 private:
  bool done() const { return rank_zero_gone_ || Clock::now() > stop_at_.load(); }

  void wait() {
    std::vector<pollfd> entries{{listener_.get(), POLLIN, 0}};
    for (const Connection& connection : connections_)
      entries.push_back({connection.stream.socket(), connection.events(), 0});
    poll(entries.data(), entries.size(), 100);
    if ((entries[0].revents & POLLIN) != 0)
      Strangers::accept(listener_.get(), secret_, connections_);
  }

  void read(Connection& connection) {
    // Invalid data comes from a foreign process, or from a broken rank, whose death is reported.
    connection.read([&](const Frame& frame) { handle(connection, frame); });
    if (connection.closed && connection.rank >= 0) lose(connection);
  }

  void handle(Connection& connection, const Frame& frame) {
    if (connection.rank < 0) {
      require(frame.type == FrameType::hello, ErrorKind::corrupt,
              "[comm control] got a message from an unknown process, expected a hello");
      const Challenger::Verdict verdict = connection.judge(secret_.key, frame);
      if (verdict.objection.empty())
        admit(connection, hello_from(verdict.claims));
      else
        refuse(connection, verdict.objection);
      return;
    }
    Rank& rank = ranks_[connection.rank];
    rank.last_seen = Clock::now();
    switch (frame.type) {
      case FrameType::blob:
        rank.member.blob = frame.body;
        rank.has_blob = true;
        complete();
        break;
      case FrameType::beat:
        rank.phase = frame.body.substr(0, kPhaseBytes);
        break;
      case FrameType::vitals:
        pass_on(connection.rank, vitals_from(frame.body).text);
        break;
      case FrameType::failure:
        fail_group(failure_from(frame.body));
        break;
      case FrameType::leave:
        rank.left = true;
        break;
      default:
        fail(ErrorKind::corrupt, "[comm control] got a message of type {} from rank {}",
             static_cast<int>(frame.type), connection.rank);
    }
  }

  void admit(Connection& connection, Hello hello) {
    // A process that connects when all ranks are taken, but before they have met, is a newcomer,
    // too.
    const bool met =
        complete_ || (hello.rank == kAnyRank &&
                      std::ranges::none_of(ranks_, [](const Rank& r) { return r.door.empty(); }));
    if (met && !ranks_[0].door.empty()) {
      std::vector<std::string> doors;
      for (const Rank& rank : ranks_) doors.push_back(rank.door);
      connection.queue(FrameType::doors, to_body(doors));
      return;
    }
    const bool any = hello.rank < 0;
    const int workers = options_.size - options_.servers;
    // Rank 0 knows whether a newcomer may join, and may be slower than all others.
    if (hello.rank == kAnyRank && free_rank(1, workers) == options_.size &&
        ranks_[0].member.process == 0) {
      connection.known = true;
      connection.early = std::move(hello);
      return;
    }
    if (hello.rank == kAnyRank) hello.rank = free_rank(1, workers);
    if (hello.rank == kAnyServer) hello.rank = free_rank(workers, options_.size);
    const std::string reason = objection(hello);
    if (!reason.empty()) return refuse(connection, reason);
    connection.rank = hello.rank;
    connection.known = true;
    Rank& rank = ranks_[hello.rank];
    rank.connection = &connection;
    rank.member = {hello.host, hello.process, {}};
    rank.door = hello.door;
    rank.last_seen = Clock::now();
    if (any) connection.queue(FrameType::place, std::to_string(hello.rank));
    if (failed_) connection.queue(FrameType::failure, to_body(failure_));
    if (connection.rank > 0) return;
    for (Connection& other : connections_)
      if (std::optional<Hello> early = std::exchange(other.early, {})) admit(other, *early);
  }

  void refuse(Connection& connection, const std::string& reason) {
    strangers_.note_refusal(connection, reason);
    connection.refuse(reason);
  }

  // The first free rank; the size if none is free. Rank 0 is the listener.
  int free_rank(int first, int last) const {
    for (int rank = first; rank < last; ++rank)
      if (ranks_[rank].member.process == 0) return rank;
    return options_.size;
  }

  std::string objection(const Hello& hello) const {
    if (hello.size != options_.size)
      return fmt::format("got a group of {} ranks, expected {}", hello.size, options_.size);
    if (hello.rank == options_.size)
      return options_.servers > 0 ? fmt::format("the group is full: {} and {} have already joined",
                                                counted(options_.size - options_.servers, "worker"),
                                                counted(options_.servers, "server"))
                                  : fmt::format("the group is full: {} have already joined",
                                                counted(options_.size, "rank"));
    if (hello.rank < 0 || hello.rank > options_.size)
      return fmt::format("got rank {}, expected 0 to {}", hello.rank, options_.size - 1);
    if (ranks_[hello.rank].connection != nullptr)
      return fmt::format("rank {} has already joined, on host {}", hello.rank,
                         ranks_[hello.rank].member.host);
    return {};
  }

  void complete() {
    std::vector<Member> table;
    for (const Rank& rank : ranks_) {
      if (!rank.has_blob) return;
      table.push_back(rank.member);
    }
    complete_ = true;
    for (Rank& rank : ranks_) rank.has_blob = false;  // there may be another round
    broadcast(FrameType::table, to_body(table));
  }

  void spread_news() {
    std::vector<Sign> news;
    for (const Rank& rank : ranks_)
      news.push_back({static_cast<float>(seconds_between(rank.last_seen, Clock::now())), rank.phase,
                      rank.left});
    broadcast(FrameType::news, to_body(news));
  }

  // Only rank 0 reports the status texts of the others.
  void pass_on(int rank, std::string vitals) {
    Connection* const zero = ranks_[0].connection;
    if (zero && !zero->closed && zero->unsent.size() < kMaxUnsent)
      zero->queue(FrameType::vitals, to_body(RankVitals{rank, std::move(vitals)}));
  }

  void lose(Connection& connection) {
    Rank& rank = ranks_[connection.rank];
    rank.connection = nullptr;
    if (!rank.left && options_.is_vital && !options_.is_vital(connection.rank)) rank.left = true;
    if (!rank.left) {
      fail_group({ErrorKind::communication,
                  fmt::format("[comm] {} on host {} (process {}) died, last seen {:.1f} s ago{}",
                              rank_name(connection.rank, options_.size, options_.servers),
                              rank.member.host, rank.member.process,
                              seconds_between(rank.last_seen, Clock::now()),
                              rank.phase.empty() ? "" : fmt::format(" in {}", rank.phase))});
    }
    if (connection.rank == 0) {
      broadcast(FrameType::leave, {});
      for (Connection& other : connections_) other.flush();
      rank_zero_gone_ = true;
    }
  }

  void fail_group(const Failure& failure) {
    if (failed_) return;
    failed_ = true;
    failure_ = failure;
    broadcast(FrameType::failure, to_body(failure));
  }

  void broadcast(FrameType type, const std::string& body) {
    for (Connection& connection : connections_)
      if (connection.rank >= 0 && !connection.closed && connection.unsent.size() < kMaxUnsent)
        connection.queue(type, body);
  }

  HubOptions options_;
  RunSecret secret_;
  FileHandle listener_;
  std::atomic<Clock::time_point> stop_at_{Clock::time_point::max()};
  std::list<Connection> connections_;
  Strangers strangers_;
  std::vector<Rank> ranks_;
  bool complete_ = false;
  bool failed_ = false;
  Failure failure_;
  bool rank_zero_gone_ = false;
};

Hub::Hub(const HubOptions& options)
    : loop_(std::make_unique<Loop>(options)), thread_([loop = loop_.get()] { loop->run(); }) {}

Hub::~Hub() {
  loop_->stop();
  thread_.join();
}

uint16_t Hub::port() const { return loop_->port(); }

}  // namespace artel::comm::control
