// Serves the dashboard over HTTP.
//
// It only reads, except for the notes of runs. Every request needs the token. Requests are bounded
// in length, time and number, and one that cannot be answered gets an error and changes nothing.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

namespace artel::dashboard {

struct ServerOptions {
  std::filesystem::path folder;    // of runs
  std::string host = "127.0.0.1";  // to listen at
  int port = 0;                    // 0: any free one
  std::string token = {};          // that browsers must know; not the token of a run
  // A PEM file with a certificate and its key, for HTTPS; empty: HTTP.
  std::filesystem::path certificate = {};
};

// Whether only this machine can reach the host, "localhost" or an address.
bool is_loopback(const std::string& host);

class Server {
 public:
  // Listens. Throws if the folder does not exist, if it cannot listen there, or without a token.
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
