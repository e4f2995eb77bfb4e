// The HTTP library's server, protected against exhaustion by unauthenticated clients.
//
// Each connection has a thread. When all threads are busy, closes the oldest connection that has
// not presented the token, or else the oldest idle one. Thread safe.
#pragma once

#include <httplib.h>

#include <list>
#include <memory>

#include "artel/base/mutex.h"

namespace artel::dashboard {

class Connection;

class GuardedServer : public httplib::Server {
 public:
  static constexpr size_t kThreads = 64;       // concurrent connections
  static constexpr size_t kMostWaiting = 256;  // further connections that wait for a thread

  // Serves without TLS if `encryption` is null. The context must outlive the server.
  explicit GuardedServer(SSL_CTX* encryption);

  // Marks the client of the current connection as authenticated. Call it from a handler's thread.
  void trust_client();

 private:
  struct Client {
    Connection* connection;
    bool trusted = false, idle = false;
  };
  class Queue;

  bool process_and_close_socket(socket_t socket) override;
  void make_room();

  SSL_CTX* const encryption_;
  Mutex mutex_;
  std::list<Client> clients_ ARTEL_GUARDED_BY(mutex_);  // oldest first
};

}  // namespace artel::dashboard
