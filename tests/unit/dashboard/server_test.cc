#include "artel/dashboard/server.h"

#include <gtest/gtest.h>
#include <httplib.h>

#include <thread>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/json_values.h"
#include "artel/dashboard/certificate.h"
#include "artel/dashboard/client.h"
#include "artel/observe/trace_summary.h"
#include "tests/support/temporary_folder.h"

namespace artel::dashboard {
namespace {

namespace fs = std::filesystem;

// A connection, for as long as it lives.
struct Socket {
  explicit Socket(int opened) : file(opened) {}
  Socket(Socket&& other) noexcept : file(std::exchange(other.file, -1)) {}
  ~Socket() {
    if (file >= 0) ::close(file);
  }
  int file;
};

// Sends text to a server, and leaves the connection open.
Socket connected(int port, const std::string& text) {
  Socket opened(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_port = htons(static_cast<uint16_t>(port));
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(opened.file, reinterpret_cast<const sockaddr*>(&place), sizeof place), 0);
  ::send(opened.file, text.data(), text.size(), MSG_NOSIGNAL);
  return opened;
}

// A folder with two runs, and a server for it.
class ServerTest : public testing::Test {
 protected:
  ServerTest() {
    write_file_atomically(folder_ / "secret.txt", "nobody's business");
    for (const char* name : {"a", "b"}) {
      const fs::path run = folder_ / "runs" / name;
      fs::create_directories(run);
      write_file_atomically(run / "config.toml", "[data]\nset = \"mnist\"\n");
      std::string lines;
      for (int step = 1; step <= 5000; ++step)
        lines += fmt::format("{{\"step\":{},\"seconds\":{},\"train/loss\":{}}}\n", step, step * 0.1,
                             step == 1234 ? 99.0 : 1.0 / step);
      lines += "{\"step\":5000,\"seconds\":1,\"event\":\"slow\",\"text\":\"worker 1 is <slow>\"}\n";
      write_file_atomically(run / "metrics.jsonl", lines);
      write_file_atomically(run / "summary.json", "{\"step\": 5000, \"stopped_by\": \"steps\"}");
    }
    fs::create_symlink(folder_ / "secret.txt", folder_ / "runs" / "a" / "notes.txt");
  }
  ~ServerTest() override {
    if (server_) server_->stop();
    if (thread_.joinable()) thread_.join();
  }

  // With a client that has shown the token.
  httplib::Client serve() {
    httplib::Client client = serve_strangers();
    client.set_default_headers({{"Authorization", "Bearer SECRET"}});
    return client;
  }

  httplib::Client serve_strangers() {
    server_.emplace(ServerOptions{.folder = folder_ / "runs", .token = "SECRET"});
    thread_ = std::thread([this] { server_->run(); });
    httplib::Client client("127.0.0.1", server_->port());
    client.set_read_timeout(10);
    for (int tries = 0; tries < 200 && !client.Get("/app.css"); ++tries)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return client;
  }

  TemporaryFolder folder_;
  std::optional<Server> server_;
  std::thread thread_;
};

TEST_F(ServerTest, RunsAndTheirCurves) {
  httplib::Client client = serve();
  const auto runs = nlohmann::json::parse(client.Get("/api/runs")->body)["runs"];
  ASSERT_EQ(runs.size(), 2);
  EXPECT_EQ(runs[0]["name"], "a");
  EXPECT_EQ(runs[0]["status"], "finished");
  EXPECT_EQ(runs[0]["step"], 5000);
  const auto answer = nlohmann::json::parse(client.Get("/api/series?run=a&points=100")->body);
  const auto& loss = answer["series"]["train/loss"];
  EXPECT_LE(loss["x"].size(), 110);
  EXPECT_GE(loss["x"].size(), 50);
  double highest = 0;
  for (const double value : loss["y"]) highest = std::max(highest, value);
  EXPECT_EQ(highest, 99);  // the peak of one step among thousands
  EXPECT_EQ(answer["events"][0]["text"], "worker 1 is <slow>");
  const auto part = nlohmann::json::parse(client.Get("/api/series?run=a&from=4990")->body);
  EXPECT_LE(part["series"]["train/loss"]["x"].size(), 12);
  EXPECT_EQ(client.Get("/")->status, 200);
  EXPECT_NE(client.Get("/metrics")->body.find("artel_run_step{run=\"a\"} 5000"), std::string::npos);
}

TEST_F(ServerTest, SettingsAndMetricsOfAllRuns) {
  write_file_atomically(folder_ / "runs" / "b" / "config.toml",
                        "[data]\nset = \"mnist\"\n[train]\nbatch_size = 48\n");
  httplib::Client client = serve();
  const auto values = [&](const std::string& key) {
    return nlohmann::json::parse(client.Get("/api/values?key=" + key)->body)["values"];
  };
  EXPECT_EQ(values("train.batch_size")["b"], 48);
  EXPECT_NE(values("train.batch_size")["a"], 48);
  EXPECT_EQ(values("data.set")["a"], "mnist");
  EXPECT_EQ(values("train/loss")["a"], 1.0 / 5000);  // the last one
  EXPECT_EQ(values("loss"), values("train/loss"));
  EXPECT_TRUE(values("nothing").empty());
  EXPECT_TRUE(values("").empty());
  // A configuration that changes, or that is unreadable.
  write_file_atomically(folder_ / "runs" / "b" / "config.toml", "[train]\nno such key = 1\n");
  fs::last_write_time(folder_ / "runs" / "b" / "config.toml",
                      fs::file_time_type::clock::now() + std::chrono::hours(1));
  EXPECT_FALSE(values("train.batch_size").contains("b"));
}

TEST_F(ServerTest, MistakesAndTextsOfARun) {
  const fs::path run = folder_ / "runs" / "b";
  write_file_atomically(run / "mistakes.png", "\x89PNG");
  write_file_atomically(run / "mistakes.json", "{\"step\": 7, \"mistakes\": []}");
  std::string lines;
  for (int step = 1; step <= 50; ++step)
    lines += fmt::format("{{\"step\":{},\"prompt\":\"a\",\"text\":\"b\"}}\n", step);
  write_file_atomically(run / "texts.jsonl", lines + "{\"step\":51,\"pro");
  httplib::Client client = serve();
  const auto answer = nlohmann::json::parse(client.Get("/api/run?run=b")->body);
  EXPECT_EQ(answer["mistakes"]["step"], 7);
  ASSERT_EQ(answer["texts"].size(), 20u);
  EXPECT_EQ(answer["texts"][0]["step"], 50);
  EXPECT_EQ(answer["texts"][19]["step"], 31);
  const auto picture = client.Get("/api/file?run=b&file=mistakes.png");
  EXPECT_EQ(picture->body, "\x89PNG");
  EXPECT_EQ(picture->get_header_value("Content-Type"), "image/png");
  const auto none = nlohmann::json::parse(client.Get("/api/run?run=a")->body);
  EXPECT_TRUE(none["mistakes"].is_null());
  EXPECT_TRUE(none["texts"].empty());
  EXPECT_EQ(client.Get("/api/file?run=a&file=mistakes.png")->status, 404);
  // A link out of the folder is not followed.
  fs::create_symlink(folder_ / "secret.txt", folder_ / "runs" / "a" / "mistakes.png");
  EXPECT_EQ(client.Get("/api/file?run=a&file=mistakes.png")->status, 404);
}

TEST_F(ServerTest, TheLastTrace) {
  httplib::Client client = serve();
  EXPECT_EQ(client.Get("/api/trace?run=a")->body, "null");
  observe::Trace trace;
  trace.add({.name = "step 7", .category = "step", .begin = 1, .duration = 0.5});
  write_file_atomically(folder_ / "runs" / "a" / "trace_summary.json",
                        to_json(observe::summarize(trace).value()));
  const auto answer = nlohmann::json::parse(client.Get("/api/trace?run=a")->body);
  EXPECT_EQ(answer["timeline"]["step"], 7);
  EXPECT_EQ(answer["timeline"]["workers"][0]["name"], "worker 0");
  write_file_atomically(folder_ / "runs" / "b" / "trace_summary.json", "{\"timeline\": 3}");
  EXPECT_EQ(client.Get("/api/trace?run=b")->body, "null");
  EXPECT_EQ(client.Get("/api/trace?run=c")->status, 404);
}

TEST_F(ServerTest, NamesDoNotLeaveTheFolder) {
  httplib::Client client = serve();
  for (const char* path :
       {"/api/series?run=..", "/api/run?run=../..", "/api/run?run=/etc",
        "/api/live?run=", "/api/run?run=a/../b", "/api/file?run=a&file=../../secret.txt",
        "/api/file?run=a&file=notes.txt", "/api/file?run=a&file=/etc/passwd",
        "/api/file?run=a&file=checkpoints", "/../secret.txt", "/secret.txt"}) {
    const auto answer = client.Get(path);
    ASSERT_TRUE(answer) << path;
    EXPECT_GE(answer->status, 400) << path;
    EXPECT_EQ(answer->body.find("nobody's"), std::string::npos) << path;
  }
  // A link out of the folder is not followed.
  EXPECT_EQ(nlohmann::json::parse(client.Get("/api/run?run=a")->body)["notes"], "");
}

TEST_F(ServerTest, OnlyNotesAreWrittenAndOnlyByThePage) {
  httplib::Client client = serve();
  const httplib::Headers ours = {{"X-Artel", "notes"}};
  EXPECT_EQ(client.Post("/api/notes?run=b", "x", "text/plain")->status, 403);
  EXPECT_EQ(client.Post("/api/notes?run=b", ours, "half the rate", "text/plain")->status, 200);
  EXPECT_EQ(read_file(folder_ / "runs" / "b" / "notes.txt"), "half the rate");
  EXPECT_EQ(client.Post("/api/notes?run=..", ours, "x", "text/plain")->status, 404);
  const auto longer =
      client.Post("/api/notes?run=b", ours, std::string(1 << 20, 'x'), "text/plain");
  EXPECT_TRUE(!longer || longer->status >= 400);
  EXPECT_EQ(client.Put("/api/notes?run=b", ours, "x", "text/plain")->status, 403);
  EXPECT_EQ(read_file(folder_ / "runs" / "b" / "notes.txt"), "half the rate");
  // The file that the link in run a points to is unchanged.
  EXPECT_EQ(client.Post("/api/notes?run=a", ours, "mine", "text/plain")->status, 200);
  EXPECT_EQ(read_file(folder_ / "secret.txt"), "nobody's business");
}

TEST_F(ServerTest, AnotherSitesPageIsRefused) {
  httplib::Client client = serve();
  EXPECT_EQ(client.Get("/api/runs", {{"Host", "evil.example:80"}})->status, 403);
  EXPECT_EQ(client.Get("/api/runs", {{"Host", "localhost:80"}})->status, 200);
  EXPECT_EQ(client.Get("/api/runs", {{"Host", "[::1]:80"}})->status, 200);
  // Names that a stranger can let lead here.
  for (const char* host : {"127.evil.example", "127.0.0.1.evil.example", "localhost.evil.example",
                           "127.0.0.1x", "[::1", "::1", "", "0.0.0.0"})
    EXPECT_EQ(client.Get("/api/runs", {{"Host", host}})->status, 403) << host;
}

TEST_F(ServerTest, ATokenIsAskedFor) {
  httplib::Client client = serve_strangers();
  EXPECT_EQ(client.Get("/")->status, 401);
  EXPECT_EQ(client.Get("/?token=SECRE")->status, 401);
  EXPECT_EQ(client.Get("/metrics", {{"Authorization", "Bearer SECRET"}})->status, 200);
  const auto page = client.Get("/?token=SECRET");
  EXPECT_EQ(page->status, 200);
  EXPECT_TRUE(page->get_header_value("Set-Cookie").starts_with("artel_token=SECRET; HttpOnly"));
  EXPECT_EQ(client.Get("/api/runs", {{"Cookie", "x=1; artel_token=SECRET"}})->status, 200);
  const std::string address = fmt::format("127.0.0.1:{}", server_->port());
  EXPECT_THROW(look_at({address, ""}, "a"), Error);
  EXPECT_EQ(look_at({address, "SECRET"}, "a").view.status, RunStatus::finished);
  EXPECT_THROW(look_at({address, "SECRET"}, ""), Error);  // none is being trained
}

TEST_F(ServerTest, APortHasOneServer) {
  serve();
  EXPECT_THROW(Server({.folder = folder_ / "runs", .port = server_->port(), .token = "x"}), Error);
}

TEST_F(ServerTest, ATokenIsNeededEverywhere) {
  EXPECT_THROW(Server({.folder = folder_ / "runs", .host = "0.0.0.0"}), Error);
  EXPECT_THROW(Server({.folder = folder_ / "runs"}), Error) << "other users of the machine";
  EXPECT_NO_THROW(Server({.folder = folder_ / "runs", .host = "0.0.0.0", .token = "x"}));
  EXPECT_THROW(Server({.folder = folder_ / "nothing", .token = "x"}), Error);
}

TEST_F(ServerTest, ByHttps) {
  const fs::path file = folder_ / "keys" / "dashboard.pem";
  EXPECT_TRUE(make_certificate(file, {"localhost", "127.0.0.1"}));
  EXPECT_FALSE(make_certificate(file, {"other"}));
  EXPECT_EQ(fs::status(file).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(fingerprint_of(file).size(), 32 * 3 - 1);
  server_.emplace(
      ServerOptions{.folder = folder_ / "runs", .token = "SECRET", .certificate = file});
  EXPECT_TRUE(server_->address().starts_with("https://127.0.0.1:"));
  thread_ = std::thread([this] { server_->run(); });
  const std::string address = fmt::format("127.0.0.1:{}", server_->port());
  const auto status = [&](const Remote& remote) {
    for (int tries = 0;; ++tries) try {
        return look_at(remote, "a").view.status;
      } catch (const Error&) {
        if (tries == 100) throw;
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      }
  };
  EXPECT_EQ(status({"https://" + address, "SECRET", file}), RunStatus::finished);
  EXPECT_THROW(look_at({"https://" + address, "wrong", file}, "a"), Error);
  EXPECT_THROW(look_at({"https://" + address, "SECRET"}, "a"), Error) << "not believed";
  EXPECT_THROW(look_at({"http://" + address, "SECRET"}, "a"), Error) << "in clear";
  make_certificate(folder_ / "other.pem", {"localhost", "127.0.0.1"});
  EXPECT_THROW(look_at({"https://" + address, "SECRET", folder_ / "other.pem"}, "a"), Error);
  EXPECT_THROW(server_encryption(folder_ / "secret.txt"), Error);
}

TEST_F(ServerTest, StrangersDoNotSilenceIt) {
  httplib::Client client = serve();
  // Requests that never end, and connections that never begin one.
  std::vector<Socket> slow;
  for (int i = 0; i < 400; ++i)
    slow.push_back(connected(server_->port(), i % 2 == 0 ? "GET / HTTP/1.1\r\nX: " : ""));
  for (int i = 0; i < 20; ++i) {
    httplib::Client next("127.0.0.1", server_->port());
    next.set_read_timeout(60);
    const auto answer = next.Get("/api/runs", {{"Authorization", "Bearer SECRET"}});
    ASSERT_TRUE(answer) << i;
    EXPECT_EQ(answer->status, 200);
  }
}

TEST_F(ServerTest, ManyOpenPagesLeaveThreadsForOthers) {
  httplib::Client client = serve();
  std::vector<Socket> pages;
  for (int i = 0; i < 60; ++i)
    pages.push_back(connected(server_->port(),
                              "GET /api/stream?token=SECRET HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  for (int i = 0; i < 20; ++i) {
    const auto answer = client.Get("/api/runs");
    ASSERT_TRUE(answer) << i;
    EXPECT_EQ(answer->status, 200);
  }
}

TEST_F(ServerTest, NotesAreShortHoweverTheyAreSent) {
  httplib::Client client = serve();
  const httplib::Headers ours = {{"X-Artel", "notes"}};
  const auto in_chunks = [](size_t bytes) {
    return [bytes](size_t offset, httplib::DataSink& sink) {
      const std::string piece(4096, 'x');
      if (offset >= bytes) sink.done();
      return offset >= bytes || sink.write(piece.data(), piece.size());
    };
  };
  const auto post = [&](size_t bytes) {
    return client.Post("/api/notes?run=b", ours, in_chunks(bytes), "text/plain");
  };
  EXPECT_EQ(post(8192)->status, 200);
  EXPECT_EQ(fs::file_size(folder_ / "runs" / "b" / "notes.txt"), 8192u);
  for (const size_t bytes : {size_t{100} << 10, size_t{32} << 20}) {
    const auto answer = post(bytes);
    EXPECT_TRUE(!answer || answer->status >= 400) << bytes;
  }
  client.set_compress(true);
  const auto inflated = client.Post("/api/notes?run=b", {{"X-Artel", "notes"}},
                                    std::string(50 << 20, 'x'), "text/plain");
  EXPECT_TRUE(!inflated || inflated->status >= 400);
  EXPECT_EQ(fs::file_size(folder_ / "runs" / "b" / "notes.txt"), 8192u);
}

TEST_F(ServerTest, OddRequestsAreAnswered) {
  httplib::Client client = serve();
  for (const char* path :
       {"/api/series?run=a&points=-5", "/api/series?run=a&points=99999999999999",
        "/api/series?run=a&from=x&to=1e400", "/api/series?run=%00%ff",
        "/api/differences?run=a&run=b&run=a", "/api/nothing", "/api/history?run=a"})
    ASSERT_TRUE(client.Get(path)) << path;
  EXPECT_EQ(client.Get("/api/runs")->status, 200);
}

// Lines of earlier versions do not separate the wait for the wire from the wait for workers.
TEST_F(ServerTest, TheHistorySeparatesTheWaitForTheWire) {
  write_file_atomically(folder_ / "runs" / "b" / "workers.jsonl",
                        R"({"at":1.0,"step":1,"workers":{"worker 0":[0.25,0.0,0.75,0.5,10.0]}})"
                        "\n"
                        R"({"at":2.0,"step":2,"workers":{"worker 0":[0.25,0.0,0.75,0.5,10.0,0.5]}})"
                        "\n");
  httplib::Client client = serve();
  const auto history = nlohmann::json::parse(client.Get("/api/history?run=b")->body);
  const auto& worker = history["workers"]["worker 0"];
  EXPECT_EQ(worker["waiting"], (nlohmann::json{0.75, 0.25}));
  EXPECT_EQ(worker["wire_wait"], (nlohmann::json{nullptr, 0.5}));
  EXPECT_EQ(worker["wire"], (nlohmann::json{0.5, 0.5}));
}

TEST_F(ServerTest, FilesThatNestDeeplyAreLeftOut) {
  const std::string deep = std::string(200'000, '[') + std::string(200'000, ']');
  for (const char* name : {"mistakes.json", "summary.json", "trace_summary.json", "texts.jsonl",
                           "workers.jsonl", "live.json"})
    write_file_atomically(folder_ / "runs" / "b" / name, deep + "\n");
  write_file_atomically(folder_ / "runs" / "b" / "metrics.jsonl",
                        "{\"step\":0.5,\"event\":\"half\",\"text\":\"x\"}\n"
                        "{\"step\":1e300,\"event\":\"far\",\"text\":\"y\"}\n");
  httplib::Client client = serve();
  for (const char* path : {"/api/run?run=b", "/api/series?run=b", "/api/history?run=b",
                           "/api/trace?run=b", "/api/runs", "/metrics", "/api/values?key=loss"}) {
    const auto answer = client.Get(path);
    ASSERT_TRUE(answer) << path;
    EXPECT_EQ(answer->status, 200) << path << ": " << answer->body;
  }
  const auto series = nlohmann::json::parse(client.Get("/api/series?run=b")->body);
  EXPECT_EQ(series["events"].size(), 2u);
}

}  // namespace
}  // namespace artel::dashboard
