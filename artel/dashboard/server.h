// The dashboard's HTTP server.
//
// It only reads, except for the notes of runs. Every request needs the token. Requests are bounded
// in length, time, and number. A failed request returns an error and changes nothing.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

namespace artel::dashboard {

struct ServerOptions {
  std::filesystem::path folder;    // contains the runs
  std::string host = "127.0.0.1";  // address to listen on
  int port = 0;                    // 0 selects a free port
  std::string token = {};          // the dashboard's token; never the token of a run
  // PEM file with a certificate and its key, for HTTPS. Empty selects HTTP.
  std::filesystem::path certificate = {};
};

// True for "localhost" and loopback addresses.
bool is_loopback(const std::string& host);

class Server {
 public:
  // Starts listening. Throws if the folder does not exist, the address is not available, or the
  // token is empty.
  explicit Server(ServerOptions options);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  int port() const;
  // The URL for a browser, including the token.
  std::string address() const;
  // Serves until `stop`, which any thread or a signal handler may call.
  void run();
  void stop() noexcept;

 private:
  class Http;
  std::unique_ptr<Http> http_;
};

}  // namespace artel::dashboard
