#include "artel/dashboard/server.h"

#include <arpa/inet.h>
#include <httplib.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <thread>

#include "artel/base/error.h"
#include "artel/base/host_name.h"
#include "artel/base/json_values.h"
#include "artel/base/log.h"
#include "artel/base/secret.h"
#include "artel/base/text.h"
#include "artel/dashboard/api.h"
#include "artel/dashboard/assets.h"
#include "artel/dashboard/certificate.h"
#include "artel/dashboard/guarded_server.h"

namespace artel::dashboard {
namespace {

constexpr size_t kMostNotes = 64 << 10;                       // bytes
constexpr size_t kMostStreams = GuardedServer::kThreads / 2;  // each open page uses one thread
constexpr double kTick = 1, kStreamSeconds = 3600;  // message interval and lifetime of a stream
constexpr size_t kMostPoints = 20'000, kMostRuns = 100;
constexpr const char* kJson = "application/json";
constexpr const char* kCookie = "artel_token=";

template <typename T>
T number_of(const httplib::Request& request, const char* name, T otherwise) {
  const std::string text = request.get_param_value(name);
  T value = otherwise;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::vector<std::string> runs_of(const httplib::Request& request) {
  std::vector<std::string> runs;
  for (size_t i = 0; i < std::min(request.get_param_value_count("run"), kMostRuns); ++i)
    runs.push_back(request.get_param_value("run", i));
  return runs;
}

// The host of "example.org:8080" and "[::1]:8080"; empty without a host.
std::string host_of(const std::string& authority) {
  if (authority.starts_with('[')) {
    const size_t end = authority.find(']');
    return end == authority.npos ? "" : authority.substr(1, end - 1);
  }
  return authority.substr(0, authority.find(':'));
}

}  // namespace

bool is_loopback(const std::string& host) {
  in_addr v4{};
  in6_addr v6{};
  if (::inet_pton(AF_INET, host.c_str(), &v4) == 1) return ntohl(v4.s_addr) >> 24 == 127;
  if (::inet_pton(AF_INET6, host.c_str(), &v6) == 1) return IN6_IS_ADDR_LOOPBACK(&v6) != 0;
  return host == "localhost";
}

class Server::Http {
 public:
  explicit Http(ServerOptions options)
      : options_(std::move(options)),
        catalogue_(options_.folder),
        encryption_(options_.certificate.empty() ? nullptr
                                                 : server_encryption(options_.certificate)),
        server_(encryption_.get()) {
    require(!options_.token.empty(), ErrorKind::invalid_argument,
            "[dashboard] address {}: others can reach it, so it needs a token", options_.host);
    // Overrides the library's options, which would let several servers share a port.
    server_.set_socket_options([](socket_t socket) {
      const int yes = 1;
      ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    });
    server_.set_payload_max_length(kMostNotes);
    server_.set_default_headers(
        {{"Content-Security-Policy", "default-src 'self'; img-src 'self' data:"},
         {"X-Content-Type-Options", "nosniff"},
         {"Referrer-Policy", "no-referrer"},
         {"Cache-Control", "no-store"}});
    server_.set_pre_routing_handler([this](const auto& request, auto& response) {
      return admit(request, response) ? httplib::Server::HandlerResponse::Unhandled
                                      : httplib::Server::HandlerResponse::Handled;
    });
    server_.set_exception_handler([](const auto&, auto& response, std::exception_ptr failure) {
      answer_failure(response, failure);
    });
    add_pages();
    add_api();
    port_ = options_.port == 0 ? server_.bind_to_any_port(options_.host)
            : server_.bind_to_port(options_.host, options_.port) ? options_.port
                                                                 : -1;
    require(port_ > 0, ErrorKind::io, "[dashboard] cannot listen at {}:{}; try another --port",
            options_.host, options_.port);
  }

  int port() const { return port_; }
  void run() { server_.listen_after_bind(); }
  void stop() noexcept {
    stopping_ = true;
    server_.stop();
  }
  std::string address() const {
    const std::string host = options_.host == "0.0.0.0" ? host_name() : options_.host;
    const bool v6 = host.find(':') != host.npos;
    return fmt::format("{}://{}{}{}:{}/?token={}", encryption_ ? "https" : "http", v6 ? "[" : "",
                       host, v6 ? "]" : "", port_, options_.token);
  }

 private:
  // Rejects cross-site requests. A foreign page does not know the token. Its requests have another
  // host's name, or lack the header that only our page sets for writes.
  bool admit(const httplib::Request& request, httplib::Response& response) {
    const std::string host = host_of(request.get_header_value("Host"));
    if (is_loopback(options_.host) && !is_loopback(host))
      return refuse(response, 403, "this dashboard answers at its own address only");
    if (!has_token(request))
      return refuse(response, 401,
                    "a token is needed: open the address that `artel dashboard` has printed");
    const bool writes = request.method == "POST" && request.path == "/api/notes" &&
                        request.get_header_value("X-Artel") == "notes";
    if (request.method != "GET" && request.method != "HEAD" && !writes)
      return refuse(response, 403, "only the dashboard's own page may write");
    server_.trust_client();
    if (request.has_param("token"))
      response.set_header("Set-Cookie", kCookie + options_.token + "; HttpOnly; SameSite=Strict" +
                                            (encryption_ ? "; Secure" : ""));
    return true;
  }

  bool has_token(const httplib::Request& request) const {
    if (same_secret(request.get_param_value("token"), options_.token)) return true;
    if (same_secret(request.get_header_value("Authorization"), "Bearer " + options_.token))
      return true;
    for (const std::string& cookie : split(request.get_header_value("Cookie"), ';'))
      if (same_secret(trim(cookie), kCookie + options_.token)) return true;
    return false;
  }

  static bool refuse(httplib::Response& response, int status, const std::string& why) {
    response.status = status;
    response.set_content(why + "\n", "text/plain");
    return false;
  }

  static void answer_failure(httplib::Response& response, const std::exception_ptr& failure) {
    try {
      std::rethrow_exception(failure);
    } catch (const Error& error) {
      refuse(response, error.kind() == ErrorKind::not_found ? 404 : 500, error.what());
    } catch (const std::exception& error) {
      refuse(response, 500, error.what());
    }
  }

  void add_pages() {
    const auto page = [this](const char* path, const char* name, const char* type) {
      server_.Get(path, [name, type](const auto&, auto& response) {
        response.set_content(std::string(asset(name)), type);
      });
    };
    page("/", "index.html", "text/html; charset=utf-8");
    page("/app.js", "app.js", "text/javascript");
    page("/charts.js", "charts.js", "text/javascript");
    page("/workers.js", "workers.js", "text/javascript");
    page("/mesh.js", "mesh.js", "text/javascript");
    page("/exhibits.js", "exhibits.js", "text/javascript");
    page("/timeline.js", "timeline.js", "text/javascript");
    page("/app.css", "app.css", "text/css");
    page("/uplot.js", "uplot.js", "text/javascript");
    page("/uplot.css", "uplot.css", "text/css");
    page("/uplot_license.txt", "uplot_license.txt", "text/plain");
  }

  void add_api() {
    const auto get = [this](const char* path, const char* type, auto answer) {
      server_.Get(path, [answer, type](const httplib::Request& request, auto& response) {
        response.set_content(answer(request), type);
      });
    };
    const auto run_of = [](const httplib::Request& r) { return r.get_param_value("run"); };
    get("/api/runs", kJson, [this](const auto&) { return runs_json(catalogue_); });
    get("/api/values", kJson,
        [this](const auto& r) { return values_json(catalogue_, r.get_param_value("key")); });
    get("/api/run", kJson, [=, this](const auto& r) { return run_json(catalogue_, run_of(r)); });
    get("/api/live", kJson, [=, this](const auto& r) { return live_json(catalogue_, run_of(r)); });
    get("/api/history", kJson,
        [=, this](const auto& r) { return history_json(catalogue_, run_of(r)); });
    get("/api/trace", kJson,
        [=, this](const auto& r) { return trace_json(catalogue_, run_of(r)); });
    get("/api/differences", kJson,
        [this](const auto& r) { return differences_json(catalogue_, runs_of(r)); });
    get("/metrics", "text/plain; version=0.0.4",
        [this](const auto&) { return prometheus_text(catalogue_); });
    get("/api/series", kJson, [=, this](const auto& r) {
      SeriesRequest wanted;
      wanted.points = std::min(number_of<size_t>(r, "points", wanted.points), kMostPoints);
      wanted.from = number_of(r, "from", wanted.from);
      wanted.to = number_of(r, "to", wanted.to);
      return series_json(catalogue_, run_of(r), wanted);
    });
    server_.Get("/api/file", [=, this](const httplib::Request& r, httplib::Response& response) {
      const std::string name = r.get_param_value("file"), type = type_of_file(name);
      const auto text = type.empty() ? std::nullopt : catalogue_.file(run_of(r), name, 256 << 20);
      if (text)
        response.set_content(*text, type);
      else
        refuse(response, 404, "no such file");
    });
    // The library limits neither chunked bodies nor the size of inflated bodies.
    server_.Post("/api/notes", [=, this](const httplib::Request& r, httplib::Response& response,
                                         const httplib::ContentReader& read) {
      std::string notes;
      const bool whole = read([&](const char* piece, size_t size) {
        notes.append(piece, size);
        return notes.size() <= kMostNotes;
      });
      if (!whole) {
        refuse(response, 413, fmt::format("notes have at most {} bytes", kMostNotes));
        return;
      }
      catalogue_.write_notes(run_of(r), notes);
      response.set_content("saved\n", "text/plain");
    });
    server_.Get("/api/stream", [this](const auto&, auto& response) { stream(response); });
  }

  // Server-sent events: the changed runs, once a second.
  void stream(httplib::Response& response) {
    if (streams_.fetch_add(1) >= static_cast<int>(kMostStreams)) {
      --streams_;
      refuse(response, 503, "too many pages are open");
      return;
    }
    const auto seen = std::make_shared<uint64_t>(0);
    const Deadline end = Deadline::after(kStreamSeconds);
    response.set_chunked_content_provider(
        "text/event-stream",
        [this, seen, end](size_t, httplib::DataSink& sink) {
          const std::string message = news_since(*seen);
          if (!sink.write(message.data(), message.size())) return false;
          for (double waited = 0; waited < kTick && !stopping_; waited += 0.1)
            std::this_thread::sleep_for(std::chrono::milliseconds(100));
          return !stopping_ && !end.passed() && sink.is_writable();
        },
        [this](bool) { --streams_; });
  }

  std::string news_since(uint64_t& seen) {
    nlohmann::json changed = nlohmann::json::array();
    uint64_t newest = seen;
    try {
      for (const Catalogue::Run& run : catalogue_.runs()) {
        if (run.version > seen) changed.push_back(run.name);
        newest = std::max(newest, run.version);
      }
    } catch (const std::exception& error) {
      log(LogLevel::debug, "dashboard: {}", error.what());
    }
    seen = newest;
    return fmt::format("data: {}\n\n",
                       changed.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  }

  ServerOptions options_;
  Catalogue catalogue_;
  std::atomic<int> streams_{0};
  std::atomic<bool> stopping_{false};
  const std::shared_ptr<SSL_CTX> encryption_;  // null for HTTP
  GuardedServer server_;
  int port_ = -1;
};

Server::Server(ServerOptions options) : http_(std::make_unique<Http>(std::move(options))) {}
Server::~Server() { stop(); }
int Server::port() const { return http_->port(); }
std::string Server::address() const { return http_->address(); }
void Server::run() { http_->run(); }
void Server::stop() noexcept { http_->stop(); }

}  // namespace artel::dashboard
