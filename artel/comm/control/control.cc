#include "artel/comm/control/control.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "artel/base/host_name.h"
#include "artel/comm/connection/handshake.h"
#include "artel/comm/connection/run_secret.h"
#include "artel/comm/failure.h"

namespace artel::comm::control {
namespace {

constexpr double kNewsSeconds = 1;  // twice as often there should be news

}  // namespace

ControlOptions control_options(const GroupOptions& options) {
  return {.address = options.address,
          .token = options.token,
          .encrypt = options.encrypt,
          .rank = options.rank,
          .size = options.size,
          .servers = options.servers,
          .door = options.door,
          .patience = options.watch.patience,
          .deadline = Deadline::after(options.join_timeout),
          .is_vital = [options](int rank) { return options.is_vital(rank, options.size); },
          .meanwhile = options.while_joining,
          .vitals = options.vitals};
}

Control::Control(const ControlOptions& options, std::unique_ptr<Hub> hub)
    : options_(options), hub_(std::move(hub)) {
  const Endpoint endpoint = parse_endpoint(options.address);
  require_token(endpoint, options.token);
  const HubOptions hub_options = {.endpoint = endpoint,
                                  .token = options.token,
                                  .encrypt = options.encrypt,
                                  .size = options.size,
                                  .servers = options.servers,
                                  .is_vital = options.is_vital};
  if (options.rank == 0 && hub_ == nullptr) hub_ = std::make_unique<Hub>(hub_options);
  if (options.rank == kAnyRank) {
    try {
      hub_ = std::make_unique<Hub>(hub_options);
      options_.rank = 0;
    } catch (const Error&) {
      // A foreign process listens there.
    }
  }
  stream_ = Stream(connect_to(endpoint, options.deadline, options.meanwhile));
  if (options.patience > 0) notice_silence(stream_.socket(), 2 * options.patience);
  introduce();
  if (options_.rank < 0) receive_rank();
}

// Both sides prove that they know the token. A door at that address sends heartbeats, even before
// it answers.
void Control::introduce() {
  const RunSecret secret(options_.token, options_.encrypt);
  Answerer answerer(kProtocol, secret.key, "hello",
                    to_body(Hello{.rank = options_.rank,
                                  .size = options_.size,
                                  .host = host_name(),
                                  .process = getpid(),
                                  .door = options_.door}),
                    options_.encrypt);
  while (true) {
    const auto frame = next_frame(std::min(options_.deadline.left(), 0.05));
    require(frame.has_value() || !options_.deadline.passed(), ErrorKind::timeout,
            "[comm] rank 0 at {} did not answer", options_.address);
    if (options_.meanwhile) options_.meanwhile();
    if (!frame || frame->type == FrameType::beat) continue;
    if (frame->type == FrameType::refusal)
      fail_refused(
          fmt::format("[comm] rank 0 at {} refused {}", options_.address,
                      options_.rank < 0 ? "this worker" : fmt::format("rank {}", options_.rank)),
          frame->body);
    if (frame->type == FrameType::challenge) {
      const std::string answer = answerer.answer(frame->body);
      if (secret.encryption) stream_.encrypt(*secret.encryption, false);
      send(FrameType::hello, answer);
      continue;
    }
    require(frame->type == FrameType::proof && answerer.believes(frame->body),
            ErrorKind::communication,
            "[comm] the process at {} does not know the run's token: it is not rank 0 of this "
            "run",
            options_.address);
    return;
  }
}

void Control::receive_rank() {
  auto frame = next_frame(options_.deadline.left());
  // A door at that address sends heartbeats, even before it answers.
  while (frame && frame->type == FrameType::beat) frame = next_frame(options_.deadline.left());
  require(frame.has_value(), ErrorKind::timeout, "[comm] rank 0 at {} did not answer",
          options_.address);
  if (frame->type == FrameType::refusal)
    fail(ErrorKind::communication, "[comm] rank 0 at {} refused this worker: {}", options_.address,
         frame->body);
  if (frame->type == FrameType::doors) throw UnderWay(doors_from(frame->body));
  int rank = kAnyRank;
  std::from_chars(frame->body.data(), frame->body.data() + frame->body.size(), rank);
  require(frame->type == FrameType::place && rank > 0 && rank < options_.size, ErrorKind::corrupt,
          "[comm] rank 0 at {} assigned this worker no rank", options_.address);
  options_.rank = rank;
}

Control::~Control() {
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
  try {
    send(FrameType::leave, {});
  } catch (const Error&) {
    // The others are gone already.
  }
  shutdown(stream_.socket(), SHUT_WR);
  stream_ = Stream();
}

std::string Control::local_address() const { return control::local_address(stream_.socket()); }

std::vector<Member> Control::exchange(std::string blob) {
  send(FrameType::blob, std::move(blob));
  while (true) {
    const auto frame = next_frame(std::min(options_.deadline.left(), 0.05));
    require(frame.has_value() || !options_.deadline.passed(), ErrorKind::timeout,
            "[comm] group at {}: not all of the {} ranks joined before the deadline",
            options_.address, options_.size);
    if (options_.meanwhile) options_.meanwhile();
    if (!frame) continue;
    if (frame->type == FrameType::refusal)
      fail(ErrorKind::communication, "[comm] rank 0 at {} refused rank {}: {}", options_.address,
           options_.rank, frame->body);
    if (frame->type == FrameType::failure) {
      const Failure failure = failure_from(frame->body);
      throw failure_error(failure.kind, failure.cause);
    }
    if (frame->type == FrameType::doors) throw UnderWay(doors_from(frame->body));
    if (frame->type != FrameType::table) continue;
    members_ = table_from(frame->body);
    require(static_cast<int>(members_.size()) == options_.size, ErrorKind::corrupt,
            "[comm] table of ranks: got {}, expected {}", members_.size(), options_.size);
    const MutexLock lock(mutex_);
    news_.resize(members_.size());
    vitals_.resize(members_.size());
    news_time_ = Clock::now();
    return members_;
  }
}

std::optional<Frame> Control::next_frame(double seconds) {
  const Deadline deadline = Deadline::after(std::min(seconds, 1e6));
  while (true) {
    if (auto frame = reader_.next()) return frame;
    if (deadline.passed()) return std::nullopt;
    std::string bytes;
    const bool open = stream_.receive_within(deadline.left(), bytes);
    reader_.feed(bytes);
    require(open, ErrorKind::communication, "[comm] rank 0 at {} closed the control connection",
            options_.address);
  }
}

void Control::watch(std::function<void()> tick) {
  tick_ = std::move(tick);
  thread_ = std::thread([this] { work(); });
}

void Control::work() try {
  Clock::time_point next_beat = Clock::now();
  std::string said;
  bool connected = true;
  while (!stopping_) {
    try {
      std::string phase;
      {
        const MutexLock lock(mutex_);
        phase = phase_;
      }
      // Send the first phase at once, so that it is known if the rank dies early.
      if (connected && (Clock::now() >= next_beat || (said.empty() && !phase.empty()))) {
        send(FrameType::beat, phase);
        if (options_.vitals)
          send(FrameType::vitals, to_body(RankVitals{rank(), options_.vitals()}));
        said = phase;
        next_beat = Clock::now() + std::chrono::milliseconds(500);
      }
      if (!connected)
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
      else if (const auto frame = next_frame(0.1))
        handle(*frame);
    } catch (const Error&) {
      connected = false;
      if (!hub_left_ && !stopping_) {
        const PeerStatus zero = status(0);
        fail_with(
            {ErrorKind::communication,
             fmt::format("[comm] rank 0 on host {} (process {}) died, last seen {:.1f} s ago{}",
                         zero.host, zero.process, zero.silent_seconds,
                         zero.phase.empty() ? "" : fmt::format(" in {}", zero.phase))});
      }
    }
    tick_();
  }
} catch (const std::exception& error) {
  // Reports the error on all ranks and keeps waking waiting threads. The cause may be temporary,
  // such as a lack of memory, so the group may be formed again.
  abort(ErrorKind::communication,
        fmt::format("[comm] control connection of rank {}: {}", rank(), error.what()));
  for (; !stopping_; std::this_thread::sleep_for(std::chrono::milliseconds(100))) tick_();
}

void Control::handle(const Frame& frame) {
  if (frame.type == FrameType::news) {
    auto news = news_from(frame.body);
    const MutexLock lock(mutex_);
    if (news.size() == news_.size()) news_ = std::move(news);
    news_time_ = Clock::now();
  } else if (frame.type == FrameType::vitals) {
    RankVitals vitals = vitals_from(frame.body);
    const MutexLock lock(mutex_);
    if (vitals.rank >= 0 && vitals.rank < std::ssize(vitals_))
      vitals_[vitals.rank] = std::move(vitals.text);
  } else if (frame.type == FrameType::failure) {
    fail_with(failure_from(frame.body));
  } else if (frame.type == FrameType::leave) {
    hub_left_ = true;
    const MutexLock lock(mutex_);
    news_[0].left = true;
  }
}

void Control::fail_with(Failure failure) {
  const MutexLock lock(mutex_);
  if (failed_) return;
  failure_ = std::move(failure);
  failed_ = true;
}

void Control::send(FrameType type, std::string body) {
  const MutexLock lock(sending_);
  stream_.send_all(encode({type, std::move(body)}), Deadline::after(10));
}

void Control::set_phase(std::string_view phase) {
  const MutexLock lock(mutex_);
  phase_ = phase.substr(0, kPhaseBytes);
}

PeerStatus Control::status(int peer) {
  const MutexLock lock(mutex_);
  const Sign& sign = news_[peer];
  // The status of all ranks comes from one sender. Without its messages, the status is unknown.
  const double without_news = seconds_between(news_time_, Clock::now());
  return {.host = members_[peer].host,
          .process = members_[peer].process,
          .silent_seconds =
              peer == 0 ? without_news : sign.silent_seconds + std::min(without_news, kNewsSeconds),
          .phase = sign.phase,
          .left = sign.left,
          .vitals = vitals_[peer]};
}

void Control::abort(ErrorKind kind, std::string_view cause) noexcept {
  const Failure failure{kind, std::string(cause)};
  if (failed_) return;
  fail_with(failure);
  try {
    send(FrameType::failure, to_body(failure));
  } catch (const Error&) {
    // Rank 0 is gone; the others notice that by themselves.
  }
}

void Control::throw_if_failed() {
  if (!failed_) return;
  const MutexLock lock(mutex_);
  throw failure_error(failure_.kind, failure_.cause);
}

bool Control::explain_loss(int peer) {
  const Deadline deadline = Deadline::after(1);
  while (!failed_ && !status(peer).left && !deadline.passed())
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  throw_if_failed();
  return status(peer).left;
}

}  // namespace artel::comm::control
