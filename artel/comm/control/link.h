// One end of a control connection, for whoever serves several of them and must not wait for any.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "artel/comm/control/socket.h"
#include "artel/comm/control/wire.h"
#include "artel/comm/run_secret.h"
#include "artel/comm/stream.h"

namespace artel::comm::control {

struct Link {
  explicit Link(FileHandle socket) : stream(std::move(socket)) {}

  void queue(FrameType type, std::string body) { unsent += encode({type, std::move(body)}); }
  // Sends what the socket takes now.
  void flush();

  // Of a listener, to begin with: asks who has connected. Its answer, a hello or a knock, is to be
  // judged. Everything after the challenge is encrypted if the run's secret says so.
  void challenge(const RunSecret& secret);
  Challenger::Verdict judge(const RunKey& key, const Frame& answer);

  // Of a caller, to begin with: how it will answer the listener's challenge. Until the listener has
  // proved itself, `read` passes nothing on but its refusal.
  void introduce(const RunSecret& secret, FrameType type, std::string claims);

  // Tells the other side why it is not heard, and closes the connection.
  void refuse(const std::string& reason);

  // Gives what has arrived to `handle`, frame by frame. The link is closed afterwards if the other
  // side has closed it, has sent something that is not a frame, or if `handle` throws an Error. A
  // caller that is not known yet may have sent kMostOfStrangers bytes at most.
  static constexpr size_t kMostOfStrangers = 256 << 10;
  void read(const std::function<void(const Frame&)>& handle);

  // What to wait for, with poll, until something can be read or flushed.
  short events() const { return stream.events(!unsent.empty()); }

  Stream stream;
  Clock::time_point since = Clock::now();
  bool known = false;  // the other side has said who it is, and was believed
  FrameReader reader;
  std::string unsent;
  bool closed = false;
  // Frames end with the introduction: what follows is left in `reader`.
  bool only_introduces = false;
  std::string failure;  // what was wrong with what the other side has sent

 private:
  bool is_part_of_the_introduction(const Frame& frame);
  void close(const Error& error);

  std::optional<Challenger> challenger_;
  std::optional<Answerer> answerer_;
  std::optional<Encryption> encryption_;  // of an answerer
  FrameType answer_type_ = FrameType::hello;
};

}  // namespace artel::comm::control
