// One end of a control connection, for whoever serves several of them and must not wait for any.
#pragma once

#include <functional>
#include <string>

#include "artel/comm/control/socket.h"
#include "artel/comm/control/wire.h"

namespace artel::comm::control {

struct Link {
  explicit Link(FileHandle the_socket) : socket(std::move(the_socket)) {}

  void queue(FrameType type, std::string body) { unsent += encode({type, std::move(body)}); }
  // Sends what the socket takes now.
  void flush();
  // Gives what has arrived to `handle`, frame by frame. The link is closed afterwards if the other
  // side has closed it, has sent something that is not a frame, or if `handle` throws an Error.
  void read(const std::function<void(const Frame&)>& handle);

  FileHandle socket;
  Clock::time_point since = Clock::now();
  bool known = false;  // has said who it is, and was believed
  FrameReader reader;
  std::string unsent;
  bool closed = false;
};

}  // namespace artel::comm::control
