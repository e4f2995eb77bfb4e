// The HTTP library's server with limits that strangers cannot use up.
//
// Each connection has a thread. When all threads are taken, the oldest connection that has not
// shown the token is closed, or else the oldest that waits for its next request. Thread safe.
#pragma once

#include <httplib.h>

#include <list>
#include <memory>
#include <mutex>

namespace artel::dashboard {

class Connection;

class GuardedServer : public httplib::Server {
 public:
  static constexpr size_t kThreads = 64;       // connections that are served at a time
  static constexpr size_t kMostWaiting = 256;  // further ones that wait for a thread

  // Without a context, in clear. The context must outlive the server.
  explicit GuardedServer(SSL_CTX* encryption);

  // To be called by a handler, on its thread: this connection's client knows the token.
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
  std::mutex mutex_;
  std::list<Client> clients_;  // by age
};

}  // namespace artel::dashboard
