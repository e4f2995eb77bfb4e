// Serves the dashboard over HTTP.
//
// It only reads, but for the notes of runs. At an address other than this machine's own it asks
// for a token. Requests are bounded in length and in number, and one that cannot be answered gets
// an error and changes nothing.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

namespace artel::dashboard {

struct ServerOptions {
  std::filesystem::path folder;    // of runs
  std::string host = "127.0.0.1";  // to listen at
  int port = 0;                    // 0: any free one
  std::string token = {};          // empty: none is asked for, at this machine's own address only
};

// Whether only this machine can reach the address.
bool is_loopback(const std::string& host);

class Server {
 public:
  // Listens. Throws if the folder does not exist, if it cannot listen there, or if another machine
  // could reach it and there is no token.
  explicit Server(ServerOptions options);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  int port() const;
  // To be opened in a browser, with the token.
  std::string address() const;
  // Serves until `stop`, which any thread may call, and a signal handler.
  void run();
  void stop() noexcept;

 private:
  class Http;
  std::unique_ptr<Http> http_;
};

}  // namespace artel::dashboard
