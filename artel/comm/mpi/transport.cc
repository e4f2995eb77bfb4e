// Messages through MPI, between processes started by mpirun or srun, over any network that MPI
// supports.
#include <mpi.h>
#include <sched.h>

#include <array>
#include <atomic>
#include <deque>
#include <thread>
#include <utility>

#include "artel/base/host_name.h"
#include "artel/base/log.h"
#include "artel/base/secret.h"
#include "artel/base/text.h"
#include "artel/comm/collectives/kernels.h"
#include "artel/comm/control/control.h"
#include "artel/comm/transports/builtin_transports.h"

namespace artel::comm {
namespace {

// MPI counts in int.
constexpr size_t kMessageBytes = size_t{1} << 30;

void check_mpi(int result, std::string_view what) {
  if (result == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(result, text.data(), &length);
  fail(ErrorKind::communication, "[comm mpi] {}: {}", what, text.data());
}

// MPI exists once per process and cannot be started twice, so this does not belong to a group. It
// is finalised when the program ends normally.
class Library {
 public:
  static Library& instance() {
    static Library library;
    return library;
  }

  // After a failure MPI_Finalize would wait for dead ranks; exiting without it makes mpirun end the
  // job.
  void mark_failed() { failed_ = true; }

 private:
  Library() {
    int initialized = 0;
    MPI_Initialized(&initialized);
    int provided = 0;
    if (initialized == 0) {
      MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided);
      owner_ = true;
    } else {
      MPI_Query_thread(&provided);
    }
    require(provided == MPI_THREAD_MULTIPLE, ErrorKind::unsupported,
            "[comm mpi] thread support: got level {}, expected MPI_THREAD_MULTIPLE ({})", provided,
            MPI_THREAD_MULTIPLE);
  }
  ~Library() {
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (owner_ && !failed_ && finalized == 0) MPI_Finalize();
  }

  bool owner_ = false;
  std::atomic<bool> failed_{false};
};

// Tags of the group (see group.cc) folded into the 31 bits of MPI: group, kind, low bits. Messages
// between two ranks keep their order, so sequence numbers may wrap.
int mpi_tag(uint64_t tag) {
  const uint64_t group = tag >> 40 & 0xff;
  const uint64_t user = tag >> 39 & 1;
  return static_cast<int>(group << 23 | user << 22 | (tag & 0x3fffff));
}

MPI_Datatype mpi_type(ElementType type) {
  switch (type) {
    case ElementType::f32:
      return MPI_FLOAT;
    case ElementType::f64:
      return MPI_DOUBLE;
    case ElementType::i8:
      return MPI_INT8_T;
    case ElementType::u8:
      return MPI_UINT8_T;
    case ElementType::i16:
      return MPI_INT16_T;
    case ElementType::i32:
      return MPI_INT32_T;
    case ElementType::i64:
      return MPI_INT64_T;
    default:
      return MPI_DATATYPE_NULL;
  }
}

// The minimum or maximum of this library, which keeps a NaN; MPI's own may drop it.
template <ReductionKind kKind>
class KeepingNan {
 public:
  KeepingNan() { check_mpi(MPI_Op_create(&run, 1, &operation_), "MPI_Op_create"); }
  ~KeepingNan() { MPI_Op_free(&operation_); }
  KeepingNan(const KeepingNan&) = delete;
  KeepingNan& operator=(const KeepingNan&) = delete;

  MPI_Op get() const { return operation_; }

 private:
  static void run(void* left, void* right, int* count, MPI_Datatype* type) {
    auto* const target = static_cast<std::byte*>(right);
    combine_pair(kKind, *type == MPI_FLOAT ? ElementType::f32 : ElementType::f64,
                 static_cast<const std::byte*>(left), target, target, static_cast<size_t>(*count));
  }

  MPI_Op operation_ = MPI_OP_NULL;
};

constexpr size_t kUnchecked = ~size_t{0};
constexpr double kSecondsToCancel = 1;

// Waits for a collective in progress. MPI makes progress only inside its calls, so this cannot
// really sleep. `look` is called periodically and ends the wait by throwing.
template <typename Look>
void finish_collective(MPI_Request request, std::string_view what, double seconds, Look look) {
  const Deadline deadline = Deadline::after(seconds);
  int done = 0;
  for (int attempt = 0; done == 0; ++attempt) {
    check_mpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE), what);
    if (done != 0) return;
    look();
    require(!deadline.passed(), ErrorKind::timeout,
            "[comm mpi] {}: not all ranks took part within {:g} s", what, seconds);
    if (attempt < 200)
      sched_yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

// A receive checks that it got `expected` bytes.
class MpiTransfer : public Transfer {
 public:
  // `meter`, if given, counts the message when it has arrived.
  MpiTransfer(const control::Control* control, int peer, size_t expected,
              PeerMeter* meter = nullptr)
      : control_(control), peer_(peer), expected_(expected), meter_(meter) {}
  // MPI must not touch the buffer afterwards. A receive that is cancelled ends at once. A send may
  // not: after a moment, which it has where the other side lives, MPI is left alone with it.
  ~MpiTransfer() override {
    const Deadline deadline = Deadline::after(kSecondsToCancel);
    for (MPI_Request& request : requests_) {
      if (request == MPI_REQUEST_NULL) continue;
      MPI_Cancel(&request);
      int done = 0;
      while (MPI_Test(&request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && done == 0 &&
             !deadline.passed())
        sched_yield();
      if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
    }
  }

  MPI_Request* add() { return &requests_.emplace_back(MPI_REQUEST_NULL); }

  bool wait(double seconds) override {
    const Deadline deadline = Deadline::after(seconds);
    for (int attempt = 0; !test(); ++attempt) {
      if (deadline.passed() || (control_ != nullptr && control_->failed())) return false;
      // MPI makes progress only while it is asked, so a wait cannot really sleep.
      if (attempt < 200)
        sched_yield();
      else
        std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
    return true;
  }

 private:
  bool test() {
    while (next_ < requests_.size()) {
      int done = 0;
      MPI_Status status;
      check_mpi(MPI_Test(&requests_[next_], &done, &status),
                fmt::format("message with rank {}", peer_));
      if (done == 0) return false;
      int bytes = 0;
      MPI_Get_count(&status, MPI_BYTE, &bytes);
      moved_ += bytes;
      ++next_;
    }
    require(expected_ == kUnchecked || moved_ == expected_, ErrorKind::communication,
            "[comm mpi] from rank {}: got a message of {} bytes, expected {}", peer_, moved_,
            expected_);
    if (PeerMeter* const meter = std::exchange(meter_, nullptr)) meter->count_received(moved_, 1);
    return true;
  }

  const control::Control* control_;
  int peer_;
  size_t expected_;
  PeerMeter* meter_;  // null: it does not count, or has counted
  size_t moved_ = 0;
  size_t next_ = 0;
  std::deque<MPI_Request> requests_;
};

class MpiTransport : public Transport {
 public:
  explicit MpiTransport(const GroupOptions& options)
      : timeout_(options.timeout), join_timeout_(options.join_timeout) {
    check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &communicator_), "MPI_Comm_dup");
    MPI_Comm_set_errhandler(communicator_, MPI_ERRORS_RETURN);
    int size = 0;
    MPI_Comm_rank(communicator_, &rank_);
    MPI_Comm_size(communicator_, &size);
    hosts_ = gather_hosts(size);
    traffic_.resize(size);
    servers_ = options.servers;
    start_control(options);
  }

  ~MpiTransport() override {
    if (control_ != nullptr && control_->failed())
      library_.mark_failed();
    else
      MPI_Comm_free(&communicator_);
  }

  std::string_view name() const override { return "mpi"; }

  std::unique_ptr<Transfer> send(int peer, uint64_t tag, std::span<const std::byte> data) override {
    auto transfer = std::make_unique<MpiTransfer>(control_.get(), peer, kUnchecked);
    traffic_[peer].count_sent(data.size(), 1);
    for_pieces(data.size(), [&](size_t begin, int bytes) {
      check_mpi(MPI_Isend(data.data() + begin, bytes, MPI_BYTE, peer, mpi_tag(tag), communicator_,
                          transfer->add()),
                "MPI_Isend");
    });
    return transfer;
  }

  std::unique_ptr<Transfer> receive(int peer, uint64_t tag, std::span<std::byte> data) override {
    auto transfer =
        std::make_unique<MpiTransfer>(control_.get(), peer, data.size(), &traffic_[peer]);
    for_pieces(data.size(), [&](size_t begin, int bytes) {
      check_mpi(MPI_Irecv(data.data() + begin, bytes, MPI_BYTE, peer, mpi_tag(tag), communicator_,
                          transfer->add()),
                "MPI_Irecv");
    });
    return transfer;
  }

  // Below 64 KiB, OpenMPI sends over TCP at once. Longer messages wait for an answer from the
  // receiver, which queues behind the data going the other way: 55 % of a wire instead of 96 %.
  size_t segment_bytes() const override { return 48 << 10; }

  bool native_all_reduce(std::span<std::byte> data, ElementType type,
                         const Reduction& reduction) override {
    const MPI_Datatype native = mpi_type(type);
    const MPI_Op operation = mpi_operation(reduction.kind, type);
    if (native == MPI_DATATYPE_NULL || operation == MPI_OP_NULL) return false;
    for_pieces(data.size(), [&](size_t begin, int bytes) {
      MPI_Request request = MPI_REQUEST_NULL;
      check_mpi(
          MPI_Iallreduce(MPI_IN_PLACE, data.data() + begin, bytes / static_cast<int>(size_of(type)),
                         native, operation, communicator_, &request),
          "MPI_Iallreduce");
      finish_collective(request, "MPI_Iallreduce", timeout_, [this] { check(); });
    });
    if (reduction.kind == ReductionKind::mean)
      divide(type, data.data(), data.size() / size_of(type), size());
    return true;
  }

  void set_phase(std::string_view phase) override {
    if (control_ != nullptr) control_->set_phase(phase);
  }
  PeerStatus status(int peer) override {
    if (control_ != nullptr) return control_->status(peer);
    return {.host = hosts_[peer]};
  }
  void abort(ErrorKind kind, std::string_view cause) noexcept override {
    if (control_ != nullptr) control_->abort(kind, cause);
  }
  void check() override {
    if (control_ != nullptr) control_->throw_if_failed();
  }

 private:
  MPI_Op mpi_operation(ReductionKind kind, ElementType type) const {
    const bool may_be_nan = type == ElementType::f32 || type == ElementType::f64;
    switch (kind) {
      case ReductionKind::sum:
      case ReductionKind::mean:
        return MPI_SUM;
      case ReductionKind::min:
        return may_be_nan ? min_.get() : MPI_MIN;
      case ReductionKind::max:
        return may_be_nan ? max_.get() : MPI_MAX;
      case ReductionKind::product:
        return MPI_PROD;
      default:
        return MPI_OP_NULL;
    }
  }

  // At least one call, even for no data.
  template <typename Body>
  static void for_pieces(size_t bytes, Body body) {
    size_t begin = 0;
    do {
      const size_t piece = std::min(kMessageBytes, bytes - begin);
      body(begin, static_cast<int>(piece));
      begin += piece;
    } while (begin < bytes);
  }

  std::vector<std::string> gather_hosts(int size) {
    std::array<char, 256> own{};
    host_name().copy(own.data(), own.size() - 1);
    std::vector<char> all(own.size() * size);
    MPI_Request request = MPI_REQUEST_NULL;
    check_mpi(MPI_Iallgather(own.data(), own.size(), MPI_CHAR, all.data(), own.size(), MPI_CHAR,
                             communicator_, &request),
              "MPI_Iallgather");
    finish_collective(request, "MPI_Iallgather", join_timeout_, [] {});
    std::vector<std::string> names;
    for (int rank = 0; rank < size; ++rank) names.emplace_back(all.data() + rank * own.size());
    return names;
  }

  // Heartbeats travel over TCP, separately from MPI. Without TCP, MPI still works, but a slow
  // peer's phase is unknown, and only mpirun notices a dead peer.
  void start_control(const GroupOptions& options) {
    std::unique_ptr<control::Hub> hub;
    std::string addresses;
    const std::string token = shared_token();
    if (rank_ == 0) {
      hub = std::make_unique<control::Hub>(control::HubOptions{
          .endpoint = {"0.0.0.0", 0},
          .token = token,
          .size = size(),
          .servers = options.servers,
          .is_vital = [options, size = size()](int rank) { return options.is_vital(rank, size); }});
      for (const std::string& address : control::own_addresses())
        if (address.find(':') == std::string::npos)
          addresses += fmt::format("{}:{} ", address, hub->port());
    }
    std::array<char, 4096> shared{};
    addresses.copy(shared.data(), shared.size() - 1);
    broadcast({shared.data(), shared.size()});
    const std::vector<std::string> places = split(trim(shared.data()), ' ');
    int reached = connect_control(places, std::move(hub), token, options) ? 1 : 0;
    MPI_Request request = MPI_REQUEST_NULL;
    check_mpi(MPI_Iallreduce(MPI_IN_PLACE, &reached, 1, MPI_INT, MPI_MIN, communicator_, &request),
              "MPI_Iallreduce");
    finish_collective(request, "MPI_Iallreduce", join_timeout_, [] {});
    if (reached == 0) {
      control_.reset();
      if (rank_ == 0)
        log(LogLevel::warning,
            "some ranks cannot reach rank 0 over TCP; messages about slow or dead ranks will have "
            "less detail");
      return;
    }
    control_->exchange({});
    control_->watch([] {});
  }

  // A secret known only to the ranks, exchanged through MPI.
  std::string shared_token() {
    std::string token = random_bytes(kDigestBytes);
    broadcast(token);
    return token;
  }

  // From rank 0, while the group forms.
  void broadcast(std::span<char> text) {
    MPI_Request request = MPI_REQUEST_NULL;
    check_mpi(MPI_Ibcast(text.data(), static_cast<int>(text.size()), MPI_CHAR, 0, communicator_,
                         &request),
              "MPI_Ibcast");
    finish_collective(request, "MPI_Ibcast", join_timeout_, [] {});
  }

  bool connect_control(const std::vector<std::string>& addresses, std::unique_ptr<control::Hub> hub,
                       const std::string& token, const GroupOptions& options) {
    for (const std::string& address : addresses) {
      try {
        control_ = std::make_unique<control::Control>(
            control::ControlOptions{.address = address,
                                    .token = token,
                                    .rank = rank_,
                                    .size = size(),
                                    .deadline = Deadline::after(3),
                                    .vitals = options.vitals},
            std::move(hub));
        return true;
      } catch (const Error&) {
        continue;  // perhaps the next address is on a network that both have
      }
    }
    return false;
  }

  Library& library_ = Library::instance();  // first: everything else needs it
  double timeout_, join_timeout_;
  KeepingNan<ReductionKind::min> min_;
  KeepingNan<ReductionKind::max> max_;
  MPI_Comm communicator_ = MPI_COMM_NULL;
  std::unique_ptr<control::Control> control_;
};

}  // namespace

std::unique_ptr<Transport> make_mpi_transport(const GroupOptions& options) {
  return std::make_unique<MpiTransport>(options);
}

}  // namespace artel::comm
