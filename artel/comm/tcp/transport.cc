// Messages over TCP, in clear or encrypted: one connection per pair of ranks, all driven by one
// thread. Ranks on one machine use shared memory instead, if they can all get it.
#include <poll.h>
#include <sys/eventfd.h>

#include <atomic>
#include <numeric>
#include <optional>
#include <thread>

#include "artel/base/secret.h"
#include "artel/comm/control/control.h"
#include "artel/comm/shm/neighbours.h"
#include "artel/comm/tcp/meeting.h"
#include "artel/comm/tcp/pair.h"
#include "artel/comm/transports/builtin_transports.h"

namespace artel::comm {
namespace {

// Time for the last bytes sent to arrive before the connections are closed.
constexpr double kSecondsToSettle = 1;

// Moves the bytes of all connections.
class Mover {
 public:
  explicit Mover(std::vector<std::unique_ptr<tcp::Pair>> pairs)
      : pairs_(std::move(pairs)),
        bell_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        thread_([this] { work(); }) {}
  ~Mover() {
    const Deadline deadline = Deadline::after(kSecondsToSettle);
    while (!settled() && !deadline.passed())
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    stopping_ = true;
    ring();
    thread_.join();
  }
  Mover(const Mover&) = delete;
  Mover& operator=(const Mover&) = delete;

  tcp::Pair& pair(int rank) { return *pairs_[rank]; }
  void ring() { eventfd_write(bell_.get(), 1); }

 private:
  bool settled() const {
    return std::all_of(pairs_.begin(), pairs_.end(),
                       [](const auto& pair) { return !pair || pair->is_settled(); });
  }

  void work() try {
    std::vector<pollfd> entries;
    bool more = false;
    while (!stopping_) {
      entries.assign(1, {bell_.get(), POLLIN, 0});
      for (const auto& pair : pairs_) {
        const short events = pair ? pair->events() : short{0};
        // A broken connection would be reported again and again.
        entries.push_back({events != 0 ? pair->socket() : -1, events, 0});
      }
      poll(entries.data(), entries.size(), more ? 0 : 1000);
      eventfd_t rings = 0;
      const bool rung = eventfd_read(bell_.get(), &rings) == 0;
      more = false;
      for (size_t i = 0; i < pairs_.size(); ++i)
        if (pairs_[i] && (rung || entries[i + 1].revents != 0)) more |= pairs_[i]->move();
    }
  } catch (const std::exception& error) {
    for (const auto& pair : pairs_)
      if (pair) pair->give_up(error.what());
  }

  std::vector<std::unique_ptr<tcp::Pair>> pairs_;  // by rank; none for this one
  FileHandle bell_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

class TcpTransport : public Transport {
 public:
  TcpTransport(const GroupOptions& options, const std::string& machine,
               std::shared_ptr<control::Control> control)
      : interface_(options.interface.empty() ? ""
                                             : control::address_of_interface(options.interface)),
        control_(std::move(control)) {
    rank_ = control_->rank();
    servers_ = options.servers;
    if (interface_.empty()) interface_ = control_->local_address();
    const FileHandle listener = control::listen_at({.host = interface_});
    // This rank's address, its machine, and a number unique to this group.
    const std::vector<control::Member> own = {
        {.host = to_string(control::Endpoint{interface_, control::port_of(listener.get())}),
         .process = 0,
         .blob = machine},
        {.host = {}, .process = 0, .blob = random_bytes(kDigestBytes)}};
    const std::vector<control::Member> table = control_->exchange(to_body(own));
    control_->watch([] {});
    std::vector<shm::Whereabouts> places;
    std::vector<std::string> addresses;
    std::string all;
    for (const control::Member& member : table) {
      const std::vector<control::Member> theirs = control::table_from(member.blob);
      require(theirs.size() == own.size(), ErrorKind::corrupt,
              "[comm tcp] address of rank {}: got {} parts, expected {}", addresses.size(),
              theirs.size(), own.size());
      hosts_.push_back(member.host);
      addresses.push_back(theirs[0].host);
      places.push_back({theirs[0].blob, member.blob});
      machines_.push_back(member.host + " " + theirs[0].blob);
      all += member.blob;
    }
    std::vector<tcp::Met> met =
        tcp::meet(listener, {.rank = rank_,
                             .addresses = addresses,
                             .hosts = hosts_,
                             .group = to_hex(RunKey(options.token).digest({"group", all})),
                             .secret = RunSecret(options.token, options.encrypt),
                             .deadline = Deadline::after(options.join_timeout),
                             .meanwhile = [&] { look_around(options); }});
    traffic_.resize(size());
    std::vector<std::unique_ptr<tcp::Pair>> pairs(met.size());
    for (size_t peer = 0; peer < met.size(); ++peer)
      if (static_cast<int>(peer) != rank_) {
        if (options.watch.patience > 0)
          control::notice_silence(met[peer].stream.socket(), 2 * options.watch.patience);
        pairs[peer] =
            std::make_unique<tcp::Pair>(std::move(met[peer].stream), std::move(met[peer].received),
                                        traffic_[static_cast<int>(peer)]);
      }
    mover_.emplace(std::move(pairs));
    neighbours_ = shm::meet_neighbours(*this, places, options, [&] { look_around(options); });
  }

  std::string_view name() const override { return "tcp"; }

  std::unique_ptr<Transfer> send(int peer, uint64_t tag, std::span<const std::byte> data) override {
    check();  // messages may arrive in time although the group has failed
    if (is_neighbour(peer)) return neighbours_->send(peer, tag, data);
    return std::make_unique<TcpTransfer>(
        *this, peer,
        tcp::Message{
            .tag = tag, .data = {const_cast<std::byte*>(data.data()), data.size()}, .sends = true});
  }
  std::unique_ptr<Transfer> receive(int peer, uint64_t tag, std::span<std::byte> data) override {
    if (is_neighbour(peer)) return neighbours_->receive(peer, tag, data);
    return std::make_unique<TcpTransfer>(*this, peer, tcp::Message{.tag = tag, .data = data});
  }

  void set_phase(std::string_view phase) override { control_->set_phase(phase); }
  PeerStatus status(int peer) override { return control_->status(peer); }
  void abort(ErrorKind kind, std::string_view cause) noexcept override {
    control_->abort(kind, cause);
  }
  void check() override {
    control_->throw_if_failed();
    if (neighbours_) neighbours_->check();
  }

 private:
  class TcpTransfer : public Transfer {
   public:
    TcpTransfer(TcpTransport& transport, int peer, const tcp::Message& message)
        : transport_(transport),
          pair_(transport.mover_->pair(peer)),
          peer_(peer),
          message_(message) {
      pair_.post(message_);
      transport_.mover_->ring();
    }
    ~TcpTransfer() override { pair_.withdraw(message_); }

    bool wait(double seconds) override {
      const shm::Neighbours::Attention attention(transport_.neighbours_.get());
      try {
        return pair_.wait(message_, seconds);
      } catch (const Error& error) {
        // The hub learns the cause a moment later. A peer that has left will never answer, so the
        // waiting side reports its operation.
        if (transport_.control_->explain_loss(peer_)) return false;
        fail(ErrorKind::communication, "[comm tcp] the connection to rank {} broke: {}", peer_,
             error.what());
      }
    }

   private:
    TcpTransport& transport_;
    tcp::Pair& pair_;
    int peer_;
    tcp::Message message_;
  };

  // Called while the group forms. Throws if it can no longer be formed.
  void look_around(const GroupOptions& options) {
    check();
    if (options.while_joining) options.while_joining();
  }

  bool is_neighbour(int peer) const { return neighbours_ && neighbours_->includes(peer); }

  std::string interface_;
  std::shared_ptr<control::Control> control_;
  std::optional<Mover> mover_;
  std::unique_ptr<shm::Neighbours> neighbours_;
};

}  // namespace

std::unique_ptr<Transport> make_tcp_transport(const GroupOptions& options,
                                              const std::string& machine,
                                              std::shared_ptr<control::Control> control) {
  if (!control) control = std::make_shared<control::Control>(control::control_options(options));
  return std::make_unique<TcpTransport>(options, machine, std::move(control));
}

}  // namespace artel::comm
