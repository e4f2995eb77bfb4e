// One end of a control connection, nonblocking, for threads that serve several connections.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "artel/comm/connection/run_secret.h"
#include "artel/comm/connection/stream.h"
#include "artel/comm/control/socket.h"
#include "artel/comm/control/wire.h"

namespace artel::comm::control {

struct Link {
  explicit Link(FileHandle socket) : stream(std::move(socket)) {}

  void queue(FrameType type, std::string body) { unsent += encode({type, std::move(body)}); }
  // Sends as much as the socket accepts without blocking.
  void flush();

  // Listener: sends the challenge. Call it first; the caller answers with a hello or a request.
  // Everything after the challenge is encrypted if the run's secret requires it.
  void challenge(const RunSecret& secret);
  Challenger::Verdict judge(const RunKey& key, const Frame& answer);

  // Caller: sets the answer to the listener's challenge. Call it first. Until the listener has
  // proved itself, `read` passes on only its refusal.
  void introduce(const RunSecret& secret, FrameType type, std::string claims);

  // Tells the other side why it is not heard, and closes the connection.
  void refuse(const std::string& reason);

  // Calls `handle` with each received frame. Closes the link if the other side has closed it or
  // sent an invalid frame, or if `handle` throws an Error. An unauthenticated caller may send at
  // most kMostOfStrangers bytes.
  static constexpr size_t kMostOfStrangers = 256 << 10;
  void read(const std::function<void(const Frame&)>& handle);

  // The events to poll for.
  short events() const { return stream.events(!unsent.empty()); }

  Stream stream;
  Clock::time_point since = Clock::now();
  bool known = false;  // the other side has authenticated
  bool spoke = false;  // an unauthenticated caller has sent something
  FrameReader reader;
  std::string unsent;
  bool closed = false;
  // Stops reading frames after the introduction; later bytes stay in `reader`.
  bool only_introduces = false;
  std::string failure;  // the error found in the other side's data

 private:
  bool is_part_of_the_introduction(const Frame& frame);
  void close(const Error& error);

  std::optional<Challenger> challenger_;
  std::optional<Answerer> answerer_;
  std::optional<Encryption> encryption_;  // of an answerer
  FrameType answer_type_ = FrameType::hello;
};

}  // namespace artel::comm::control
