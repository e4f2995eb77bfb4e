// Messages over TCP through Gloo: one connection per pair of ranks, driven by Gloo's own thread.
// Ranks on one machine use shared memory instead, if they can all get it.
#include <gloo/allreduce.h>
#include <gloo/common/error.h>
#include <gloo/context.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <numeric>
#include <optional>
#include <set>

#include "artel/base/log.h"
#include "artel/base/mutex.h"
#include "artel/base/random.h"
#include "artel/base/secret.h"
#include "artel/comm/collectives/kernels.h"
#include "artel/comm/connection/broken_pipe.h"
#include "artel/comm/connection/handshake.h"
#include "artel/comm/connection/patience.h"
#include "artel/comm/control/control.h"
#include "artel/comm/gloo/lookout.h"
#include "artel/comm/gloo/poster.h"
#include "artel/comm/shm/neighbours.h"
#include "artel/comm/transports/builtin_transports.h"

// Takes the place of the system's own, also for Gloo, which asks for the name of each new peer on a
// thread where an exception ends the process. One that is gone before it was asked for has no name:
// here that is an empty one, and Gloo finds out when it reads.
// docs/decisions/0194-peers-without-a-name.md
extern "C" int getpeername(int socket, sockaddr* name, socklen_t* bytes) noexcept {
  const auto result = static_cast<int>(syscall(SYS_getpeername, socket, name, bytes));
  if (result == 0 || errno != ENOTCONN) return result;
  const sockaddr_in nobody = {.sin_family = AF_INET, .sin_port = 0, .sin_addr = {}, .sin_zero = {}};
  std::memcpy(name, &nobody, std::min<size_t>(*bytes, sizeof nobody));
  *bytes = sizeof nobody;
  return 0;
}

namespace artel::comm {
namespace {

// Gloo closes every connection when one of its own timeouts passes, so it never gets ours. Instead,
// its waits are interrupted ten times a second.
constexpr auto kGlooForever = std::chrono::hours(24 * 30);

// The waits in progress.
class Waits {
 public:
  void interrupt_all() {
    const MutexLock lock(mutex_);
    for (auto* buffer : receiving_) buffer->abortWaitRecv();
    for (auto* buffer : sending_) buffer->abortWaitSend();
  }

  // Waits on the buffer; false if it was interrupted.
  bool wait(::gloo::transport::UnboundBuffer& buffer, bool sends) {
    const Registration registration(*this, sends ? sending_ : receiving_, &buffer);
    return sends ? buffer.waitSend(kGlooForever) : buffer.waitRecv(kGlooForever);
  }

 private:
  using Buffers = std::set<::gloo::transport::UnboundBuffer*>;

  struct Registration {
    Registration(Waits& waits, Buffers& buffers, ::gloo::transport::UnboundBuffer* buffer)
        : waits(waits), buffers(buffers), buffer(buffer) {
      const MutexLock lock(waits.mutex_);
      buffers.insert(buffer);
    }
    ~Registration() {
      const MutexLock lock(waits.mutex_);
      buffers.erase(buffer);
    }
    Waits& waits;
    Buffers& buffers;
    ::gloo::transport::UnboundBuffer* buffer;
  };

  Mutex mutex_;
  Buffers receiving_ ARTEL_GUARDED_BY(mutex_);
  Buffers sending_ ARTEL_GUARDED_BY(mutex_);
};

// Gives Gloo's collectives our connections.
class NativeContext : public ::gloo::Context {
 public:
  NativeContext(int rank, int size, std::shared_ptr<::gloo::transport::Device> device,
                std::shared_ptr<::gloo::transport::Context> context)
      : ::gloo::Context(rank, size) {
    device_ = std::move(device);
    transportContext_ = std::move(context);
  }
};

// Thrown on all ranks when each attempt to connect through Gloo has failed.
struct Unconnected {};

class GlooTransport : public Transport {
 public:
  // `interface`: the address to listen at; empty for that of the control connection.
  GlooTransport(const GroupOptions& options, const std::string& machine, std::string interface,
                std::shared_ptr<control::Control> control)
      : interface_(std::move(interface)), timeout_(options.timeout), control_(std::move(control)) {
    survive_broken_pipes();
    rank_ = control_->rank();
    servers_ = options.servers;
    if (interface_.empty()) interface_ = control_->local_address();
    traffic_.resize(options.size);
    const std::vector<shm::Whereabouts> hosts = connect(options, machine);
    control_->watch([this] { waits_.interrupt_all(); });
    neighbours_ = shm::meet_neighbours(*this, hosts, options, [&] { look_around(options); });
  }

  std::string_view name() const override { return "gloo"; }

  std::unique_ptr<Transfer> send(int peer, uint64_t tag, std::span<const std::byte> data) override {
    check();  // messages may arrive in time although the group has failed
    if (is_neighbour(peer)) return neighbours_->send(peer, tag, data);
    return std::make_unique<GlooTransfer>(*this, peer, tag, true,
                                          const_cast<std::byte*>(data.data()), data.size());
  }
  std::unique_ptr<Transfer> receive(int peer, uint64_t tag, std::span<std::byte> data) override {
    if (is_neighbour(peer)) return neighbours_->receive(peer, tag, data);
    return std::make_unique<GlooTransfer>(*this, peer, tag, false, data.data(), data.size());
  }

  bool native_all_reduce(std::span<std::byte> data, ElementType type,
                         const Reduction& reduction) override {
    if (reduction.kind == ReductionKind::user) return false;
    translated(rank_, [&] {
      ::gloo::AllreduceOptions options(
          std::make_shared<NativeContext>(rank_, size(), device_, context_));
      const size_t count = data.size() / size_of(type);
      switch (size_of(type)) {
        case 1:
          options.setOutput(reinterpret_cast<uint8_t*>(data.data()), count);
          break;
        case 2:
          options.setOutput(reinterpret_cast<uint16_t*>(data.data()), count);
          break;
        case 4:
          options.setOutput(reinterpret_cast<uint32_t*>(data.data()), count);
          break;
        default:
          options.setOutput(reinterpret_cast<uint64_t*>(data.data()), count);
      }
      options.setReduceFunction([&](void* to, const void* left, const void* right, size_t n) {
        combine_pair(reduction.kind, type, static_cast<const std::byte*>(left),
                     static_cast<const std::byte*>(right), static_cast<std::byte*>(to), n);
      });
      options.setTimeout(std::chrono::milliseconds(static_cast<int64_t>(timeout_ * 1000)));
      ::gloo::allreduce(options);
      if (reduction.kind == ReductionKind::mean) divide(type, data.data(), count, size());
      return true;
    });
    return true;
  }

  void set_phase(std::string_view phase) override { control_->set_phase(phase); }
  PeerStatus status(int peer) override { return control_->status(peer); }
  void abort(ErrorKind kind, std::string_view cause) noexcept override {
    control_->abort(kind, cause);
  }
  void check() override {
    control_->throw_if_failed();
    if (lookout_ != nullptr) lookout_->check();
    if (neighbours_) neighbours_->check();
  }

 private:
  class GlooTransfer : public Transfer, public gloo::Posting {
   public:
    GlooTransfer(GlooTransport& transport, int peer, uint64_t tag, bool sends, std::byte* data,
                 size_t bytes)
        : transport_(transport),
          peer_(peer),
          tag_(tag),
          bytes_(bytes),
          sends_(sends),
          buffer_(transport.context_->createUnboundBuffer(data, bytes)) {
      if (sends_) transport_.traffic_[peer_].count_sent(bytes_, 1);
      transport_.poster_->post(*this);
    }
    ~GlooTransfer() override { transport_.poster_->withdraw(*this); }

    bool wait(double) override {
      if (done_) return true;
      const shm::Neighbours::Attention attention(transport_.neighbours_.get());
      done_ = transport_.translated(peer_, [this] {
        const bool done = transport_.waits_.wait(*buffer_, sends_);
        if (!done) transport_.poster_->throw_if_failed(*this);
        return done;
      });
      if (done_ && !sends_) transport_.traffic_[peer_].count_received(bytes_, 1);
      return done_;
    }

   private:
    void run() override {
      if (sends_)
        buffer_->send(peer_, tag_, 0, bytes_);
      else
        buffer_->recv(peer_, tag_, 0, bytes_);
    }

    GlooTransport& transport_;
    int peer_;
    uint64_t tag_;
    size_t bytes_;
    bool sends_;
    bool done_ = false;
    std::unique_ptr<::gloo::transport::UnboundBuffer> buffer_;
  };

  // Gloo's errors only reflect a broken connection; the hub learns the cause a moment later. For a
  // peer that has left, returns false, and the waiting side reports its operation.
  template <typename Body>
  bool translated(int peer, Body&& body) {
    try {
      return body();
    } catch (const Error&) {
      throw;
    } catch (const std::exception& error) {
      if (control_->explain_loss(peer)) return false;
      fail(ErrorKind::communication, "[comm gloo] the connection to {} broke: {}", describe(peer),
           error.what());
    }
  }

  // Gloo gives a connection to the first process that connects to its port. If a foreign process
  // was faster than a rank, all ranks reconnect at other ports. After the last attempt, they stop
  // using Gloo.
  std::vector<shm::Whereabouts> connect(const GroupOptions& options, const std::string& machine) {
    for (int attempt = 1; attempt <= kMostAttempts; ++attempt) {
      GroupOptions limited = options;
      limited.join_timeout =
          std::min(options.join_timeout * kShareOfTime, kFirstSeconds * attempt * attempt);
      limited.watch.patience = 0;  // that is for ranks that are connected
      const auto table = control_->exchange(open_pairs(limited, machine));
      hosts_.clear();
      machines_.clear();
      for (const control::Member& member : table) hosts_.push_back(member.host);
      std::vector<shm::Whereabouts> places;
      if (agree_on(fault_of([&] { places = connect_pairs(table, limited); }), attempt))
        return places;
      poster_.reset();
      context_.reset();
      device_.reset();
    }
    throw Unconnected();
  }

  // Lets `check` ask a lookout for as long as it lives.
  struct Watch {
    Watch(const gloo::Lookout*& the_place, const gloo::Lookout* lookout) : place(the_place) {
      place = lookout;
    }
    ~Watch() { place = nullptr; }
    const gloo::Lookout*& place;
  };

  static constexpr int kMostAttempts = 3;
  static constexpr double kFirstSeconds = 2;  // for the first attempt; later ones have more
  // Share of the deadline for each attempt. The rest is left for Artel's own connections.
  static constexpr double kShareOfTime = 0.2;

  // Returns the error of the attempt; empty without one.
  static std::string fault_of(const std::function<void()>& attempt) {
    try {
      attempt();
      return {};
    } catch (const std::exception& error) {  // ours, or one of Gloo's
      return error.what();
    }
  }

  // True if all ranks succeeded. Throws if a rank has died.
  bool agree_on(const std::string& fault, int attempt) {
    const auto verdicts = control_->exchange(fault);
    for (int rank = 0; rank < std::ssize(verdicts); ++rank) {
      const std::string& theirs = verdicts[static_cast<size_t>(rank)].blob;
      if (theirs.empty()) continue;
      if (rank_ == 0)
        log(LogLevel::warning, "{}; all ranks connect again{}", theirs,
            attempt < kMostAttempts ? ""
                                    : ", through Artel's own connections instead of Gloo "
                                      "(cluster.transport = \"tcp\")");
      return false;
    }
    return true;
  }

  // Listens at one address for each peer; returns the addresses, for the others.
  std::string open_pairs(const GroupOptions& options, const std::string& machine) {
    ::gloo::transport::tcp::attr attributes(interface_.c_str());
    device_ = ::gloo::transport::tcp::CreateDevice(attributes);
    poster_.emplace(dynamic_cast<::gloo::transport::tcp::Device&>(*device_));
    context_ = device_->createContext(rank_, options.size);
    context_->setTimeout(  // before there are pairs, which take it over
        std::chrono::milliseconds(static_cast<int64_t>(options.join_timeout * 1000)));
    std::vector<control::Member> addresses(options.size);
    addresses[rank_].blob = machine;
    for (int peer = 0; peer < options.size; ++peer) {
      if (peer == rank_) continue;
      const auto bytes = context_->createPair(peer)->address().bytes();
      addresses[peer].host = interface_;
      addresses[peer].blob.assign(bytes.begin(), bytes.end());
    }
    return to_body(addresses);
  }

  std::vector<shm::Whereabouts> connect_pairs(const std::vector<control::Member>& table,
                                              const GroupOptions& options) {
    std::vector<shm::Whereabouts> hosts;
    // Gloo waits for each peer until its timeout, even if that peer has died.
    gloo::Lookout lookout(
        [&] {
          control_->throw_if_failed();
          if (options.while_joining) options.while_joining();
        },
        [&] {
          for (int peer = 0; peer < options.size; ++peer)
            if (peer != rank_) context_->getPair(peer)->close();
        });
    // Waits for messages end only when interrupted; `check` then decides whether to continue.
    const gloo::Lookout pulse([&] { waits_.interrupt_all(); }, [] {});
    const Watch watch(lookout_, &lookout);
    for (int peer = 0; peer < options.size; ++peer) {
      const auto theirs = control::table_from(table[peer].blob);
      require(static_cast<int>(theirs.size()) == options.size, ErrorKind::corrupt,
              "[comm gloo] addresses of rank {}: got {}, expected {}", peer, theirs.size(),
              options.size);
      hosts.push_back({theirs[peer].blob, table[peer].blob});
      machines_.push_back(table[peer].host + " " + theirs[peer].blob);
      if (peer == rank_) continue;
      const control::Member& target = theirs[rank_];
      try {
        context_->getPair(peer)->connect({target.blob.begin(), target.blob.end()});
      } catch (const std::exception& error) {
        // Also Gloo's failed assertions: the lookout may close a connection while it is being made.
        lookout.finish();
        fail(ErrorKind::communication,
             "[comm gloo] rank {} at {} cannot reach rank {} on host {} at {}: {}; wrong network "
             "interface? try naming one that both machines share",
             rank_, interface_, peer, table[peer].host, target.host, error.what());
      }
    }
    prove_connections(hosts, options);
    lookout.finish();
    return hosts;
  }

  // Called while the group forms. Throws if it can no longer be formed.
  void look_around(const GroupOptions& options) {
    check();
    if (options.while_joining) options.while_joining();
  }

  bool is_neighbour(int peer) const { return neighbours_ && neighbours_->includes(peer); }

  // Both ends of each connection show that they are the ranks that the table names: a digest of two
  // fresh numbers, one of either side.
  void prove_connections(const std::vector<shm::Whereabouts>& hosts, const GroupOptions& options) {
    const RunKey key(options.token);
    std::vector<int> ranks(size());
    std::iota(ranks.begin(), ranks.end(), 0);
    std::vector<std::string> mine(size());
    for (std::string& number : mine) number = random_bytes(kDigestBytes);
    const std::vector<std::string> theirs =
        shm::exchange_texts(*this, ranks, mine, "challenges", options);
    const auto proof = [&](int from, int to) {
      const bool own = from == rank_;
      const int peer = own ? to : from;
      return key.digest({"data", hosts[0].contact, hosts[from].contact, hosts[to].contact,
                         own ? mine[peer] : theirs[peer], own ? theirs[peer] : mine[peer]});
    };
    std::vector<std::string> proofs;
    for (const int peer : ranks) proofs.push_back(proof(rank_, peer));
    const std::vector<std::string> shown =
        shm::exchange_texts(*this, ranks, proofs, "proofs", options);
    for (const int peer : ranks)
      require(peer == rank_ || same_secret(shown[peer], proof(peer, rank_)),
              ErrorKind::communication,
              "[comm gloo] the data connection of rank {} to rank {} on host {} belongs to another "
              "process, which "
              "does not know the run's token",
              rank_, peer, hosts_[peer]);
  }

  std::string interface_;
  double timeout_;
  Waits waits_;
  std::shared_ptr<control::Control> control_;
  std::shared_ptr<::gloo::transport::Device> device_;
  std::shared_ptr<::gloo::transport::Context> context_;
  std::optional<gloo::Poster> poster_;
  const gloo::Lookout* lookout_ = nullptr;  // while the group forms; for the thread that forms it
  std::unique_ptr<shm::Neighbours> neighbours_;
};

}  // namespace

std::unique_ptr<Transport> make_gloo_transport(const GroupOptions& options,
                                               const std::string& machine) {
  // First, because the error for an unknown interface should not wait for the other ranks.
  const std::string interface =
      options.interface.empty() ? "" : control::address_of_interface(options.interface);
  const auto control = std::make_shared<control::Control>(control::control_options(options));
  try {
    return std::make_unique<GlooTransport>(options, machine, interface, control);
  } catch (const Unconnected&) {
    return make_tcp_transport(options, machine, control);
  }
}

}  // namespace artel::comm
