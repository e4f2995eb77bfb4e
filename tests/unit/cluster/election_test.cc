// Explores how members elect a leader: the orders in which messages arrive, members stop, wake up
// and die. All states of three members of which one dies and of two that stop twice; breadth first
// up to a number of states for three members with other faults, and at random for up to five.
// ARTEL_ELECTION_STATES and ARTEL_ELECTION_WALKS ask for more.
#include "artel/cluster/election.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <unordered_set>

namespace artel::election_model {
namespace {

using Members = std::vector<int>;

// A membership that was proposed.
struct Proposal {
  Members members = {}, ended = {};
  std::vector<int> before = {};  // indices of its ancestors
  int joined = 0;                // a bit for each member that waits for its group to form
  bool formed = false;           // all members were there at once
};

struct Message {
  enum class Kind : uint8_t { enter, probe, agree, close, beat, proposal, rejection, leave };
  Kind kind;
  int value = -1;  // of a beat: the leader; of a proposal: its index
};

// One member's connection to another's door.
struct Wire {
  bool open = false;             // as its caller sees it
  bool at_door = false;          // as the door sees it
  bool enters = false;           // and what it came for
  bool told = false;             // a proposal
  int said = -2;                 // the leader that the door named last
  std::vector<Message> to_door;  // of one connection after the other
  std::vector<Message> to_caller;
  bool doubtful = false;  // the door's process has stood still since the caller last heard from it
};

struct Node {
  enum class State : uint8_t { trains, meets, forms, outside, dead };
  State state = State::trains;
  bool paused = false, was_paused = false;
  int membership = 0;            // the index of the last one whose group was formed
  std::vector<int> agreed = {};  // later ones that it has agreed to
  Election election{{0}, 0};
  int led = -1;  // the proposal it has made in this election
};

struct World {
  std::vector<Proposal> proposals;
  std::vector<Node> nodes;
  std::vector<Wire> wires;     // [caller * n + callee]
  int pauses = 0, deaths = 0;  // that may still happen
  bool killed = false;         // a member has died, other than by finding itself apart
};

// Applies one event to a world.
class Model {
 public:
  explicit Model(World& world) : w(world), n(static_cast<int>(world.nodes.size())) {}

  static World begin(int members, int pauses, int deaths) {
    World world;
    world.proposals.push_back({.formed = true});
    for (int i = 0; i < members; ++i) world.proposals[0].members.push_back(i);
    world.nodes.resize(static_cast<size_t>(members));
    world.wires.resize(static_cast<size_t>(members * members));
    world.pauses = pauses;
    world.deaths = deaths;
    return world;
  }

  struct Event {
    enum class Kind : uint8_t {
      notice,
      to_door,
      to_caller,
      beat,
      silence,
      form,
      give_up,
      pause,
      wake,
      die
    };
    Kind kind;
    int a = 0, b = 0;
  };

  // `faults`: also what disturbs. `hurry`: those who are disturbed react at once, as in `settle`.
  std::vector<Event> events(bool faults) const {
    using K = Event::Kind;
    std::vector<Event> all;
    for (int a = 0; a < n; ++a) {
      const Node& node = w.nodes[a];
      if (node.state == Node::State::dead) continue;
      if (node.paused) {
        if (faults) all.push_back({K::wake, a});
        continue;
      }
      if (faults && w.pauses > 0) all.push_back({K::pause, a});
      if (faults && w.deaths > 0) all.push_back({K::die, a});
      if (node.state == Node::State::trains && is_broken(node.membership, a))
        all.push_back({K::notice, a});
      if (node.state == Node::State::forms && w.proposals[node.agreed.back()].formed)
        all.push_back({K::form, a});
      if (node.state == Node::State::forms && is_broken(node.agreed.back(), a))
        all.push_back({K::give_up, a});
      for (int b = 0; b < n; ++b) {
        if (a == b) continue;
        const Wire &out = wire(a, b), &in = wire(b, a);
        if (!in.to_door.empty()) all.push_back({K::to_door, b, a});
        if (!out.to_caller.empty()) all.push_back({K::to_caller, a, b});
        if (in.at_door && in.to_caller.empty() && in.said != announced(a))
          all.push_back({K::beat, b, a});
        // A sign of life for a caller that has given this member up.
        else if (in.at_door && in.open && in.to_caller.empty() &&
                 w.nodes[b].state == Node::State::meets && gave_up(b, a))
          all.push_back({K::beat, b, a});
        if (out.open && node.state == Node::State::meets && !node.election.is_lost(b) &&
            (out.doubtful || w.nodes[b].paused))
          all.push_back({K::silence, a, b});
      }
    }
    return all;
  }

  void apply(const Event& event) {
    using K = Event::Kind;
    Node& node = w.nodes[event.a];
    switch (event.kind) {
      case K::notice:
        return meet(event.a);
      case K::to_door:
        return at_door(event.a, event.b);
      case K::to_caller:
        return at_caller(event.a, event.b);
      case K::beat:
        return beat(event.a, event.b);
      case K::silence:
        node.election.fell_silent(event.b);
        return act(event.a);
      case K::form:
        return form(event.a);
      case K::give_up:
        return give_up(event.a);
      case K::pause:
        --w.pauses;
        node.paused = node.was_paused = true;
        for (int b = 0; b < n; ++b) wire(b, event.a).doubtful = true;
        return;
      case K::wake:
        node.paused = false;
        return;
      case K::die:
        --w.deaths;
        w.killed = true;
        return die(event.a);
    }
  }

  // Drops what no event depends on any more, so that there are finitely many states: fields of
  // closed connections, elections that are over, and proposals that will never be formed, of which
  // one stands for all with the same members.
  void simplify() {
    for (Wire& line : w.wires) {
      if (!line.at_door) {
        line.told = line.enters = false;
        line.said = -2;
      }
      if (!line.open) line.doubtful = false;
    }
    std::vector<bool> abandoned(w.proposals.size());
    for (size_t i = 0; i < w.proposals.size(); ++i)
      abandoned[i] = is_abandoned(static_cast<int>(i));
    const auto stands_for = [&](int proposal) {
      const Proposal& own = w.proposals[proposal];
      for (int i = 0; i < proposal && abandoned[proposal]; ++i)
        if (abandoned[i] && w.proposals[i].members == own.members &&
            w.proposals[i].ended == own.ended)
          return i;
      return proposal;
    };
    for (Node& node : w.nodes) {
      if (node.state != Node::State::meets) {
        node.led = -1;
        node.election = Election({0}, 0);
      }
      const bool forms = node.state == Node::State::forms;
      const auto before = node.agreed.end() - (forms ? 1 : 0);
      std::transform(node.agreed.begin(), before, node.agreed.begin(), stands_for);
      std::sort(node.agreed.begin(), before);
      node.agreed.erase(std::unique(node.agreed.begin(), before), before);
    }
    renumber(abandoned);
  }

  // The invariant that is violated; empty if none.
  std::string violation() const {
    for (int a = 0; a < n; ++a)
      if (w.nodes[a].state == Node::State::outside && !w.nodes[a].was_paused)
        return "an innocent member was dropped: " + std::to_string(a);
    // Members that have ended do not count, so those that are left may not know what others have
    // done with them: the price for continuing after all but one were killed.
    if (std::ranges::any_of(w.nodes,
                            [](const Node& node) { return node.state == Node::State::dead; }))
      return {};
    for (size_t i = 0; i < w.proposals.size(); ++i)
      for (size_t j = 0; j < i; ++j)
        if (w.proposals[i].formed && w.proposals[j].formed &&
            !std::ranges::count(w.proposals[i].before, static_cast<int>(j)) &&
            !std::ranges::count(w.proposals[j].before, static_cast<int>(i)))
          return "two memberships with the same predecessor were formed";
    return {};
  }

  // Nothing more goes wrong, and all messages arrive. `wake`: those who are stopped wake up;
  // otherwise they never do. Returns what is wrong in the end; empty: nothing.
  std::string settle(bool wake) {
    for (Node& node : w.nodes)
      if (wake) node.paused = false;
    for (Wire& each : w.wires) each.doubtful = false;
    constexpr int kMost = 3000;
    std::mt19937 random(1);
    for (int i = 0; i < kMost; ++i) {
      const std::vector<Event> all = events(false);
      // Silence takes longer than anything else.
      const auto quick = [](const Event& e) { return e.kind != Event::Kind::silence; };
      const auto next = std::ranges::find_if(all, quick);
      if (all.empty()) return violation().empty() ? end() : violation();
      apply(next != all.end() ? *next : all[random() % all.size()]);
    }
    return "it does not come to an end";
  }

  std::string print() const {
    std::string text;
    for (int a = 0; a < n; ++a) {
      const Node& node = w.nodes[a];
      text += "\n member " + std::to_string(a) + " state " +
              std::to_string(static_cast<int>(node.state)) + (node.paused ? " paused" : "") +
              " membership " + std::to_string(node.membership) + " leader " +
              std::to_string(node.state == Node::State::meets ? node.election.leader() : -1);
      for (int b = 0; b < n; ++b)
        if (wire(a, b).open || wire(a, b).at_door)
          text += " [" + std::to_string(b) + (wire(a, b).enters ? " enters" : " probes") +
                  (wire(a, b).open ? " open" : "") + (wire(a, b).at_door ? " at_door" : "") + "]";
    }
    return text;
  }

 private:
  // True if a member has given it up.
  bool is_abandoned(int proposal) const {
    if (w.proposals[proposal].formed) return false;
    return std::ranges::any_of(w.nodes, [&](const Node& node) {
      return std::ranges::count(node.agreed, proposal) > 0 &&
             (node.state != Node::State::forms || node.agreed.back() != proposal);
    });
  }

  // Keeps the proposals that were formed or are known to somebody.
  void renumber(const std::vector<bool>& abandoned) {
    std::vector<bool> kept(w.proposals.size());
    for (size_t i = 0; i < kept.size(); ++i) kept[i] = w.proposals[i].formed;
    const auto for_each_reference = [&](const auto& visit) {
      for (Node& node : w.nodes) {
        visit(node.membership);
        if (node.led >= 0) visit(node.led);
        for (int& each : node.agreed) visit(each);
      }
      for (Wire& line : w.wires)
        for (Message& message : line.to_caller)
          if (message.kind == Message::Kind::proposal) visit(message.value);
    };
    for_each_reference([&](int proposal) { kept[proposal] = true; });
    std::vector<Proposal> left;
    std::vector<int> index(kept.size(), -1);
    for (size_t i = 0; i < kept.size(); ++i) {
      if (!kept[i]) continue;
      Proposal proposal = w.proposals[i];
      if (proposal.formed || abandoned[i]) proposal.joined = 0;
      std::vector<int> before;
      for (const int each : proposal.before)
        if (index[each] >= 0 && !abandoned[each] && !abandoned[i]) before.push_back(index[each]);
      std::ranges::sort(before);
      proposal.before = before;
      index[i] = static_cast<int>(left.size());
      left.push_back(proposal);
    }
    for_each_reference([&](int& proposal) { proposal = index[proposal]; });
    w.proposals = std::move(left);
  }

  Wire& wire(int caller, int callee) const {
    return w.wires[static_cast<size_t>(caller * n + callee)];
  }
  bool gave_up(int a, int b) const {
    const auto& members = w.proposals[w.nodes[a].membership].members;
    return std::ranges::count(members, b) > 0 && w.nodes[a].election.is_lost(b);
  }
  int announced(int a) const {
    return w.nodes[a].state == Node::State::meets ? w.nodes[a].election.announced_leader() : -1;
  }

  // True if the group of a membership cannot work, or is not going to be formed.
  bool is_broken(int membership, int seen_by) const {
    return std::ranges::any_of(w.proposals[membership].members, [&](int member) {
      const Node& node = w.nodes[member];
      if (member == seen_by) return false;
      if (node.paused || node.state == Node::State::dead || node.state == Node::State::outside)
        return true;
      if (node.state == Node::State::forms) return node.agreed.back() != membership;
      if (node.state == Node::State::trains) return node.membership != membership;
      // The member is in a meeting: true if the news of this membership cannot be missing.
      return node.membership == membership || std::ranges::count(node.agreed, membership) > 0 ||
             !is_on_its_way(membership, member);
    });
  }
  bool is_on_its_way(int membership, int member) const {
    for (int b = 0; b < n; ++b) {
      for (const Message& message : wire(member, b).to_caller)
        if (message.kind == Message::Kind::proposal && message.value == membership) return true;
    }
    return w.nodes[member].led == membership;
  }

  void meet(int a) {
    Node& node = w.nodes[a];
    hang_up_all(a);
    node.state = Node::State::meets;
    node.led = -1;
    std::vector<Members> agreed;
    for (const int each : node.agreed)
      if (std::ranges::count(agreed, w.proposals[each].members) == 0)
        agreed.push_back(w.proposals[each].members);
    node.election = Election(w.proposals[node.membership].members, a, agreed);
    for (int b = 0; b < n; ++b)
      if (wire(b, a).at_door && wire(b, a).enters && knows(a, b)) node.election.guest_came(b);
    act(a);
  }

  void hang_up(int a, int b) {
    Wire& line = wire(a, b);
    if (!std::exchange(line.open, false)) return;
    line.to_caller.clear();
    if (w.nodes[b].state != Node::State::dead) line.to_door.push_back({Message::Kind::close});
  }
  void hang_up_all(int a) {
    for (int b = 0; b < n; ++b) hang_up(a, b);
  }

  // The door of `b` closes the connection of `a`.
  void send_away(int a, int b) {
    Wire& line = wire(a, b);
    if (!line.at_door) return;
    say(a, b, {Message::Kind::close});
    line.at_door = line.told = false;
  }
  // The door of `b` says something to `a`, if that has not hung up meanwhile.
  void say(int a, int b, const Message& message) {
    Wire& line = wire(a, b);
    const bool hung_up = std::ranges::any_of(
        line.to_door, [](const Message& m) { return m.kind == Message::Kind::close; });
    if (line.open && !hung_up) line.to_caller.push_back(message);
  }

  void act(int a) {
    Node& node = w.nodes[a];
    using K = Election::Action::Kind;
    Members refused;
    for (const auto& [kind, b] : node.election.step()) {
      if (kind == K::enter || kind == K::probe) {
        if (w.nodes[b].state == Node::State::dead) {
          refused.push_back(b);
          continue;
        }
        Wire& line = wire(a, b);
        line.open = true;
        line.to_caller.clear();
        line.doubtful = w.nodes[b].paused;
        line.to_door.push_back({kind == K::enter ? Message::Kind::enter : Message::Kind::probe});
      } else if (kind == K::hang_up) {
        hang_up(a, b);
      } else if (kind == K::propose) {
        propose(a);
      } else if (kind == K::withdraw) {
        for (int guest = 0; guest < n; ++guest)
          if (wire(guest, a).told) send_away(guest, a);
      } else {
        wire(a, b).to_door.push_back({Message::Kind::agree});
      }
    }
    for (const int b : refused) node.election.ended(b);
    if (!refused.empty()) return act(a);
    if (node.election.outcome() == Election::Outcome::leads) adopt(a, node.led, false);
    if (node.election.outcome() == Election::Outcome::rejected) step_outside(a);
    if (node.election.outcome() == Election::Outcome::apart) die(a);
  }

  void propose(int a) {
    Node& node = w.nodes[a];
    Proposal proposal = {.members = node.election.remaining(),
                         .ended = {},
                         .before = w.proposals[node.membership].before};
    proposal.before.push_back(node.membership);
    for (const int b : w.proposals[node.membership].members)
      if (node.election.has_ended(b)) proposal.ended.push_back(b);
    node.led = static_cast<int>(w.proposals.size());
    w.proposals.push_back(proposal);
    for (const int b : proposal.members) {
      if (b == a) continue;
      wire(b, a).told = true;
      say(b, a, {Message::Kind::proposal, node.led});
    }
  }

  // Keeps the connection to the leader.
  void adopt(int a, int membership, bool follows) {
    Node& node = w.nodes[a];
    for (int b = 0; b < n; ++b)
      if (!follows || node.election.leader() != b) hang_up(a, b);
    Proposal& proposal = w.proposals[membership];
    // It follows all that its members have agreed to.
    for (const int each : node.agreed)
      if (!std::ranges::count(proposal.before, each)) proposal.before.push_back(each);
    node.agreed.push_back(membership);
    node.state = Node::State::forms;
    proposal.joined |= 1 << a;
    const bool all =
        std::ranges::all_of(proposal.members, [&](int m) { return proposal.joined >> m & 1; });
    if (all) proposal.formed = true;
  }

  void form(int a) {
    Node& node = w.nodes[a];
    node.state = Node::State::trains;
    node.membership = node.agreed.back();
    node.agreed.clear();
    hang_up_all(a);
    for (int b = 0; b < n; ++b)
      if (wire(b, a).at_door && !knows(a, b)) say(b, a, {Message::Kind::rejection});
  }

  void give_up(int a) {
    Node& node = w.nodes[a];
    Proposal& proposal = w.proposals[node.agreed.back()];
    if (!proposal.formed) proposal.joined &= ~(1 << a);
    for (int b = 0; b < n; ++b)
      if (wire(b, a).enters) send_away(b, a);
    meet(a);
  }

  void step_outside(int a) {
    w.nodes[a].state = Node::State::outside;
    hang_up_all(a);
    for (int b = 0; b < n; ++b) {
      if (wire(b, a).enters) send_away(b, a);
      if (wire(b, a).at_door) say(b, a, {Message::Kind::leave});
    }
  }

  void die(int a) {
    hang_up_all(a);
    w.nodes[a].state = Node::State::dead;
    w.nodes[a].paused = false;
    for (int b = 0; b < n; ++b) {
      if (wire(b, a).open) wire(b, a).to_caller.push_back({Message::Kind::close});
      wire(b, a).to_door.clear();
      wire(b, a).at_door = wire(b, a).told = false;
    }
  }

  void leave_door(int a, int b) {
    Wire& line = wire(a, b);
    if (!std::exchange(line.at_door, false)) return;
    line.told = false;
    if (line.enters && w.nodes[b].state == Node::State::meets && knows(b, a)) {
      w.nodes[b].election.guest_left(a);
      act(b);
    }
  }
  bool knows(int a, int b) const {
    return std::ranges::count(w.proposals[w.nodes[a].membership].members, b) > 0;
  }

  void at_door(int a, int b) {
    Wire& line = wire(a, b);
    const Message message = line.to_door.front();
    line.to_door.erase(line.to_door.begin());
    Node& host = w.nodes[b];
    if (message.kind == Message::Kind::close) return leave_door(a, b);
    if (message.kind == Message::Kind::agree) {
      if (line.told && host.state == Node::State::meets) {
        host.election.agreed(a);
        act(b);
      }
      return;
    }
    leave_door(a, b);
    line.at_door = true;
    line.enters = message.kind == Message::Kind::enter;
    line.said = -2;
    if (host.state == Node::State::outside) return say(a, b, {Message::Kind::leave});
    if (!knows(b, a)) return say(a, b, {Message::Kind::rejection});
    if (host.state != Node::State::meets) return;
    if (line.enters)
      host.election.guest_came(a);
    else
      host.election.heard(a);
    act(b);
  }

  void beat(int a, int b) {
    Wire& line = wire(a, b);
    line.said = announced(b);
    say(a, b, {Message::Kind::beat, line.said});
  }

  void at_caller(int a, int b) {
    Wire& line = wire(a, b);
    const Message message = line.to_caller.front();
    line.to_caller.erase(line.to_caller.begin());
    Node& node = w.nodes[a];
    line.doubtful = w.nodes[b].paused;
    if (message.kind == Message::Kind::close) {
      line.open = false;
      line.to_caller.clear();  // its process may have died after it closed the connection
    }
    if (node.state == Node::State::forms) {
      if (message.kind == Message::Kind::close) give_up(a);
      return;
    }
    if (node.state != Node::State::meets) return;
    if (message.kind == Message::Kind::close) {
      node.election.closed(b);
    } else if (message.kind == Message::Kind::beat) {
      node.election.door_spoke(b, message.value);
    } else if (message.kind == Message::Kind::rejection) {
      node.election.rejected();
    } else if (message.kind == Message::Kind::leave) {
      hang_up(a, b);
      node.election.ended(b);
    } else {
      const Proposal& proposal = w.proposals[message.value];
      node.election.proposed(b, proposal.members, proposal.ended);
      if (node.election.outcome() == Election::Outcome::follows) {
        act(a);
        return adopt(a, message.value, true);
      }
    }
    act(a);
  }

  // All who are left train together.
  std::string end() const {
    std::optional<int> membership;
    for (int a = 0; a < n; ++a) {
      const Node& node = w.nodes[a];
      if (node.paused || node.state == Node::State::dead || node.state == Node::State::outside)
        continue;
      if (node.state != Node::State::trains)
        return "member " + std::to_string(a) + " waits for ever";
      const bool all_live = std::ranges::none_of(
          w.nodes, [](const Node& each) { return each.state == Node::State::dead; });
      if (membership && *membership != node.membership && all_live) return "members train apart";
      membership = node.membership;
      for (const int b : w.proposals[node.membership].members)
        if (w.nodes[b].paused || w.nodes[b].state == Node::State::dead)
          return "a lost member is waited for";
    }
    const bool any = std::ranges::any_of(w.nodes, [](const Node& node) {
      return !node.paused && node.state == Node::State::outside;
    });
    const bool somebody_stopped =
        std::ranges::any_of(w.nodes, [](const Node& node) { return node.paused; });
    // The only ones who could continue may have been killed.
    if (!membership && any && !somebody_stopped && !w.killed) return "all members are outside";
    return {};
  }

  World& w;
  int n;
};

std::string to_string(const Model::Event& event) {
  constexpr const char* kNames[] = {"notices",  "reaches door", "hears door", "is beaten to by",
                                    "gives up", "forms",        "breaks off", "stops",
                                    "wakes",    "dies"};
  return "\n  " + std::to_string(event.a) + " " + kNames[static_cast<int>(event.kind)] + " " +
         std::to_string(event.b);
}

std::string settles(const World& world) {
  for (const bool wake : {true, false}) {
    World copy = world;
    Model model(copy);
    if (const std::string wrong = model.settle(wake); !wrong.empty())
      return wrong + (wake ? " (all woke up)" : " (nobody woke up)") + model.print();
  }
  return {};
}

// Worlds that have been seen, by a compact text.
class Seen {
 public:
  // False if it was there already.
  bool insert(const World& world) {
    std::string key;
    const auto add = [&](int value) { key += static_cast<char>(value); };
    const auto add_all = [&](const std::vector<int>& values) {
      add(static_cast<int>(values.size()));
      for (const int value : values) add(value);
    };
    for (const Proposal& proposal : world.proposals) {
      add_all(proposal.members);
      add_all(proposal.ended);
      add_all(proposal.before);
      add(proposal.joined * 2 + (proposal.formed ? 1 : 0));
    }
    for (const Node& node : world.nodes) {
      add(static_cast<int>(node.state) * 4 + node.paused * 2 + node.was_paused);
      add(node.membership);
      add_all(node.agreed);
      add(node.led);
      const int election =
          elections_.emplace(node.election, static_cast<int>(elections_.size())).first->second;
      for (const int shift : {0, 8, 16, 24}) add(election >> shift);
    }
    for (const Wire& line : world.wires) {
      add(line.open + 2 * line.at_door + 4 * line.enters + 8 * line.told + 16 * line.doubtful);
      add(line.said);
      for (const auto* const queue : {&line.to_door, &line.to_caller}) {
        add(static_cast<int>(queue->size()));
        for (const Message& message : *queue) {
          add(static_cast<int>(message.kind));
          add(message.value);
        }
      }
    }
    add(world.pauses * 16 + world.deaths);
    return keys_.insert(std::move(key)).second;
  }
  size_t size() const { return keys_.size(); }

 private:
  std::unordered_set<std::string> keys_;
  std::map<Election, int> elections_;
};

// Every order, up to a number of states: breadth first, or, if there is no limit, depth first,
// which takes less memory. Returns how many states are left.
size_t explore(int members, int pauses, int deaths, size_t most) {
  Seen seen;
  std::deque<World> next = {Model::begin(members, pauses, deaths)};
  seen.insert(next.front());
  while (!next.empty() && seen.size() < most) {
    World world;
    if (most == SIZE_MAX) {
      world = std::move(next.back());
      next.pop_back();
    } else {
      world = std::move(next.front());
      next.pop_front();
    }
    if (const std::string wrong = settles(world); !wrong.empty()) {
      ADD_FAILURE() << wrong << Model(world).print();
      break;
    }
    for (const Model::Event& event : Model(world).events(true)) {
      World after = world;
      Model model(after);
      model.apply(event);
      if (const std::string wrong = model.violation(); !wrong.empty()) {
        ADD_FAILURE() << wrong << model.print();
        return next.size();
      }
      model.simplify();
      if (seen.insert(after)) next.push_back(std::move(after));
    }
  }
  std::printf("%zu states of %d members, %zu left\n", seen.size(), members, next.size());
  return next.size();
}

void wander(int members, int pauses, int deaths, int walks, unsigned seed) {
  std::mt19937 random(seed);
  for (int walk = 0; walk < walks; ++walk) {
    World world = Model::begin(members, pauses, deaths);
    std::string history;
    for (int step = 0; step < 120; ++step) {
      const std::vector<Model::Event> events = Model(world).events(true);
      if (events.empty()) break;
      Model model(world);
      const Model::Event& event = events[random() % events.size()];
      history += to_string(event);
      model.apply(event);
      ASSERT_EQ(model.violation(), "")
          << "walk " << walk << " of seed " << seed << history << model.print();
      const std::string wrong = step % 10 == 0 ? settles(world) : "";
      ASSERT_EQ(wrong, "") << "walk " << walk << ", step " << step << " of seed " << seed
                           << history;
    }
  }
}

size_t number_from(const char* variable, size_t fallback) {
  const char* const text = std::getenv(variable);
  return text ? std::stoul(text) : fallback;
}

TEST(Election, AllOrdersOfEventsOfThreeMembersOfWhichOneDiesEndInOneMembership) {
  EXPECT_EQ(explore(3, 0, 1, SIZE_MAX), 0u);
}

TEST(Election, AllOrdersOfEventsOfTwoMembersThatStopTwiceEndInOneMembership) {
  EXPECT_EQ(explore(2, 2, 0, SIZE_MAX), 0u);
}

TEST(Election, OrdersOfEventsOfThreeMembersEndInOneMembership) {
  const size_t states = number_from("ARTEL_ELECTION_STATES", 12'000);
  explore(3, 1, 0, states);
  explore(3, 2, 0, states);
  explore(3, 1, 1, states);
}

TEST(Election, RandomOrdersOfEventsOfFourAndFiveMembersEndInOneMembership) {
  const unsigned seed = std::random_device()();
  const int walks = static_cast<int>(number_from("ARTEL_ELECTION_WALKS", 1'000));
  wander(3, 4, 1, walks, seed);
  wander(4, 3, 1, walks, seed);
  wander(5, 4, 2, walks, seed);
}

// A membership with newcomers was agreed to, but its group was not formed.
class ElectionAfterNewcomers : public testing::Test {
 protected:
  Election election_{{4}, 4, {{4, 7, 8}}};

  void SetUp() override {
    EXPECT_EQ(election_.step().size(), 2u) << "both newcomers are asked";
    EXPECT_EQ(election_.outcome(), Election::Outcome::open);
  }
};

TEST_F(ElectionAfterNewcomers, TheLastMemberContinuesWhenTheyHaveEnded) {
  election_.ended(7);
  election_.ended(8);
  election_.step();
  EXPECT_EQ(election_.outcome(), Election::Outcome::leads);
  EXPECT_EQ(election_.remaining(), Members{4});
}

TEST_F(ElectionAfterNewcomers, ItStopsWhenTheyMayHaveFormedItWithoutIt) {
  election_.fell_silent(7);
  election_.fell_silent(8);
  election_.step();
  EXPECT_EQ(election_.outcome(), Election::Outcome::apart);
}

TEST_F(ElectionAfterNewcomers, ItWaitsForOneThatHasFormedIt) {
  election_.ended(7);
  election_.guest_came(8);
  election_.step();
  EXPECT_EQ(election_.remaining(), (Members{4, 8}));
  election_.agreed(8);
  election_.step();
  EXPECT_EQ(election_.outcome(), Election::Outcome::leads);
}

}  // namespace
}  // namespace artel::election_model
