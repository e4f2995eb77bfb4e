// Explores how members elect a leader: the orders in which messages arrive, members stop, wake up,
// die, are cut off, and join. All states for one fault, and for two in small worlds; breadth first
// up to a number of states with more faults, and at random for up to five members.
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
#include <tuple>
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
  enum class Kind : uint8_t { enter, probe, join, agree, close, beat, proposal, rejection, leave };
  Kind kind;
  int value = -1;  // of a beat: the leader; of a proposal: its index
};

// One member's connection to another's door.
struct Wire {
  bool open = false;             // as its caller sees it
  bool at_door = false;          // as the door sees it
  bool enters = false;           // and what it came for
  bool joins = false;            // as a newcomer
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
  bool cut = false;              // nothing arrives from it or at it
  bool newcomer = false;         // not a member of the first group
  int membership = 0;            // the index of the last one whose group was formed; -1 if none
  std::vector<int> agreed = {};  // later ones that it has agreed to
  Election election{{0}, 0};
  int led = -1;  // the proposal it has made in this election
};

// The faults of a world, and its newcomers.
struct Faults {
  int pauses = 0, deaths = 0;
  int cuts = 0;       // a member loses its paths to all others, perhaps for a while
  int newcomers = 0;  // that come once
};

struct World {
  std::vector<Proposal> proposals;
  std::vector<Node> nodes;
  std::vector<Wire> wires;   // [caller * n + callee]
  Faults left;               // faults that may still happen
  bool has_one_side = true;  // no two sides may continue
  bool killed = false;       // a member has died, other than by finding itself apart
};

// Applies one event to a world.
class Model {
 public:
  explicit Model(World& world) : w(world), n(static_cast<int>(world.nodes.size())) {}

  static World begin(int members, const Faults& faults) {
    World world;
    world.proposals.push_back({.formed = true});
    for (int i = 0; i < members; ++i) world.proposals[0].members.push_back(i);
    const int all = members + faults.newcomers;
    world.nodes.resize(static_cast<size_t>(all));
    for (int i = members; i < all; ++i) {
      Node& node = world.nodes[static_cast<size_t>(i)];
      node.state = Node::State::outside;
      node.newcomer = true;
      node.membership = -1;
    }
    world.wires.resize(static_cast<size_t>(all * all));
    world.left = faults;
    // Ended members do not count towards a majority. If a group forms while a member is paused or
    // cut off, and most of that group dies, the member may take the others for silent and continue.
    world.has_one_side = faults.deaths == 0 || faults.pauses + 2 * faults.cuts < 2;
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
      die,
      cut,
      mend,
      knock
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
      if (faults && w.left.pauses > 0) all.push_back({K::pause, a});
      if (faults && w.left.deaths > 0) all.push_back({K::die, a});
      if (faults && node.cut) all.push_back({K::mend, a});
      if (faults && w.left.cuts > 0 && !node.cut) all.push_back({K::cut, a});
      if (node.state == Node::State::trains && (is_broken(node.membership, a) || has_newcomers(a)))
        all.push_back({K::notice, a});
      if (node.state == Node::State::forms && w.proposals[node.agreed.back()].formed)
        all.push_back({K::form, a});
      if (node.state == Node::State::forms && is_broken(node.agreed.back(), a))
        all.push_back({K::give_up, a});
      for (int b = 0; b < n; ++b) {
        if (a == b) continue;
        const Wire &out = wire(a, b), &in = wire(b, a);
        const bool path = !is_cut(a, b);
        if (faults && w.left.newcomers > 0 && is_fresh(a) && admits(b))
          all.push_back({K::knock, a, b});
        if (path && !in.to_door.empty()) all.push_back({K::to_door, b, a});
        if (path && !out.to_caller.empty()) all.push_back({K::to_caller, a, b});
        if (in.at_door && in.to_caller.empty() && in.said != announced(a))
          all.push_back({K::beat, b, a});
        // A sign of life for a caller that has given this member up.
        else if (in.at_door && in.open && in.to_caller.empty() && !has_hung_up(in) &&
                 w.nodes[b].state == Node::State::meets && gave_up(b, a))
          all.push_back({K::beat, b, a});
        if (out.open && node.state == Node::State::meets && !node.election.is_lost(b) &&
            (out.doubtful || w.nodes[b].paused || !path))
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
        --w.left.pauses;
        node.paused = node.was_paused = true;
        for (int b = 0; b < n; ++b) wire(b, event.a).doubtful = true;
        return;
      case K::wake:
        node.paused = false;
        return;
      case K::die:
        --w.left.deaths;
        w.killed = true;
        return die(event.a);
      case K::cut:
        --w.left.cuts;
        node.cut = true;
        for (Node& each : w.nodes) each.was_paused = true;  // none is innocent of a cut path
        for (int b = 0; b < n; ++b) wire(b, event.a).doubtful = wire(event.a, b).doubtful = true;
        return;
      case K::mend:
        node.cut = false;
        return;
      case K::knock:
        --w.left.newcomers;
        wire(event.a, event.b).open = true;
        wire(event.a, event.b).to_door.push_back({Message::Kind::join});
        return;
    }
  }

  // Drops what no event depends on any more, so that there are finitely many states: fields of
  // closed connections, messages that have no effect, elections that are over, and proposals that
  // will never be formed, of which one stands for all with the same members.
  void simplify() {
    for (int a = 0; a < n; ++a)
      for (int b = 0; b < n; ++b) simplify_wire(a, b);
    for (Node& node : w.nodes) {
      if (node.state == Node::State::dead || node.state == Node::State::outside) {
        node.membership = -1;
        node.agreed.clear();
      }
      if (node.state != Node::State::meets) {
        node.led = -1;
        node.election = Election({0}, 0);
      }
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
      if (w.nodes[a].state == Node::State::outside && !w.nodes[a].was_paused &&
          !w.nodes[a].newcomer)
        return "an innocent member was dropped: " + std::to_string(a);
    if (w.has_one_side && trains_apart()) return "two members train apart";
    // The remaining members need not know the groups that dead members have formed.
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

  // Nothing more goes wrong, and all messages arrive. `wake`: those who are stopped or cut off come
  // back; otherwise they never do. Returns what is wrong in the end; empty: nothing. `known` is
  // asked in each state whether the rest is known to end well.
  std::string settle(bool wake, const std::function<bool(const World&)>& known) {
    for (Node& node : w.nodes)
      if (wake) node.paused = node.cut = false;
    for (Wire& each : w.wires) each.doubtful = false;
    w.left = {};
    constexpr int kMost = 3000;
    std::mt19937 random(1);
    for (int i = 0; i < kMost; ++i) {
      simplify();
      if (known(w)) return violation();
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
  void simplify_wire(int a, int b) {
    Wire& line = wire(a, b);
    const Node::State caller = w.nodes[a].state, host = w.nodes[b].state;
    using M = Message::Kind;
    // At a door, the end of a connection that has ended, and agreements that are too late.
    const auto has_no_effect = [&](const Message& message) {
      return (message.kind == M::close && !line.at_door) ||
             (message.kind == M::agree && !(line.told && host == Node::State::meets));
    };
    while (!line.to_door.empty() && has_no_effect(line.to_door.front()))
      line.to_door.erase(line.to_door.begin());
    // A member that has agreed waits for nothing else from the leader.
    if (caller == Node::State::forms)
      std::erase_if(line.to_caller, [](const Message& m) { return m.kind != M::close; });
    const bool hears = line.open && caller != Node::State::forms && !has_hung_up(line);
    if (!line.at_door) {
      line.told = line.enters = line.joins = false;
      line.said = -2;
    } else if (!hears) {
      line.said = announced(b);
    }
    if (!line.open || caller != Node::State::meets) line.doubtful = false;
  }

  // True if a member has given it up, or can no longer be part of it.
  bool is_abandoned(int proposal) const {
    if (w.proposals[proposal].formed) return false;
    const auto gave_it_up = [&](const Node& node) {
      return std::ranges::count(node.agreed, proposal) > 0 &&
             (node.state != Node::State::forms || node.agreed.back() != proposal);
    };
    return std::ranges::any_of(w.nodes, gave_it_up) ||
           std::ranges::any_of(w.proposals[proposal].members, [&](int member) {
             const Node& node = w.nodes[member];
             return node.state == Node::State::dead ||
                    (node.state == Node::State::outside && !node.newcomer);
           });
  }

  // Two members that live have last formed groups of which none follows the other.
  bool trains_apart() const {
    const auto follows = [&](int a, int b) {
      return a == b || std::ranges::count(w.proposals[a].before, b) > 0;
    };
    for (const Node& a : w.nodes)
      for (const Node& b : w.nodes)
        if (lives(a) && lives(b) && !follows(a.membership, b.membership) &&
            !follows(b.membership, a.membership))
          return true;
    return false;
  }
  static bool lives(const Node& node) {
    return node.state != Node::State::dead && node.state != Node::State::outside &&
           node.membership >= 0;
  }

  // True if each present and future membership follows this one that was formed.
  bool is_common_past(size_t proposal) const {
    const auto follows = [&](int other) {
      return std::ranges::count(w.proposals[other].before, static_cast<int>(proposal)) > 0;
    };
    for (const Node& node : w.nodes)
      if (node.membership >= 0 && !follows(node.membership)) return false;
    for (size_t i = 0; i < w.proposals.size(); ++i)
      if (i != proposal && !follows(static_cast<int>(i)) &&
          !std::ranges::count(w.proposals[proposal].before, static_cast<int>(i)))
        return false;
    return true;
  }

  // Keeps the proposals that some member knows, and formed ones that may still get a second
  // successor. Their order does not depend on the order of proposing.
  void renumber(const std::vector<bool>& abandoned) {
    std::vector<bool> kept(w.proposals.size());
    for (size_t i = 0; i < kept.size(); ++i) kept[i] = w.proposals[i].formed && !is_common_past(i);
    const auto for_each_reference = [&](const auto& visit) {
      for (Node& node : w.nodes) {
        if (node.membership >= 0) visit(node.membership);
        if (node.led >= 0) visit(node.led);
        for (int& each : node.agreed) visit(each);
      }
      for (Wire& line : w.wires)
        for (Message& message : line.to_caller)
          if (message.kind == Message::Kind::proposal) visit(message.value);
    };
    for_each_reference([&](int proposal) { kept[proposal] = true; });
    std::vector<size_t> order;
    for (size_t i = 0; i < kept.size(); ++i) {
      if (!kept[i]) continue;
      order.push_back(i);
      if (w.proposals[i].formed || abandoned[i]) w.proposals[i].joined = 0;
    }
    std::ranges::stable_sort(order, [&](size_t a, size_t b) {
      const Proposal &left = w.proposals[a], &right = w.proposals[b];
      return std::tie(left.members, left.ended, left.formed, left.joined) <
             std::tie(right.members, right.ended, right.formed, right.joined);
    });
    std::vector<int> index(kept.size(), -1);
    for (size_t i = 0; i < order.size(); ++i) index[order[i]] = static_cast<int>(i);
    std::vector<Proposal> left;
    for (const size_t i : order) {
      Proposal proposal = w.proposals[i];
      std::vector<int> before;
      for (const int each : proposal.before)
        if (index[each] >= 0 && !abandoned[each] && !abandoned[i]) before.push_back(index[each]);
      std::ranges::sort(before);
      proposal.before = before;
      left.push_back(proposal);
    }
    for_each_reference([&](int& proposal) { proposal = index[proposal]; });
    for (Node& node : w.nodes)
      std::sort(node.agreed.begin(),
                node.agreed.end() - (node.state == Node::State::forms ? 1 : 0));
    w.proposals = std::move(left);
  }

  Wire& wire(int caller, int callee) const {
    return w.wires[static_cast<size_t>(caller * n + callee)];
  }
  bool is_cut(int a, int b) const { return w.nodes[a].cut || w.nodes[b].cut; }
  // True for a newcomer that has not come yet.
  bool is_fresh(int a) const {
    const Node& node = w.nodes[a];
    return node.newcomer && node.state == Node::State::outside && node.membership < 0 &&
           std::ranges::none_of(w.proposals, [&](const Proposal& p) {
             return std::ranges::count(p.members, a) > 0;
           });
  }
  // True for a member that leads a group and lets newcomers in.
  bool admits(int b) const {
    const Node& node = w.nodes[b];
    return node.state == Node::State::trains && w.proposals[node.membership].members.front() == b;
  }
  bool has_newcomers(int b) const {
    for (int a = 0; a < n; ++a)
      if (wire(a, b).at_door && wire(a, b).joins) return true;
    return false;
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
      if (node.state == Node::State::outside && node.newcomer && !node.paused &&
          !is_cut(member, seen_by) && is_on_its_way(membership, member))
        return false;
      if (node.paused || is_cut(member, seen_by) || node.state == Node::State::dead ||
          node.state == Node::State::outside)
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
    if (w.nodes[b].state == Node::State::dead) return;
    line.to_door.push_back({Message::Kind::close});
    forget_repeated_call(line);
  }
  // A connection that was closed before the door heard of it is like another one before it.
  static void forget_repeated_call(Wire& line) {
    const auto calls = [&](size_t i) {
      const Message::Kind kind = line.to_door[i].kind;
      return (kind == Message::Kind::enter || kind == Message::Kind::probe) &&
             line.to_door[i + 1].kind == Message::Kind::close;
    };
    const size_t messages = line.to_door.size();
    if (messages < 4 || !calls(messages - 2)) return;
    for (size_t i = 0; i + 3 < messages; ++i)
      if (calls(i) && line.to_door[i].kind == line.to_door[messages - 2].kind)
        return static_cast<void>(line.to_door.erase(line.to_door.end() - 2, line.to_door.end()));
  }
  static bool has_hung_up(const Wire& line) {
    return std::ranges::any_of(line.to_door,
                               [](const Message& m) { return m.kind == Message::Kind::close; });
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
    if (line.open && !has_hung_up(line)) line.to_caller.push_back(message);
  }

  void act(int a) {
    Node& node = w.nodes[a];
    using K = Election::Action::Kind;
    Members refused;
    for (const auto& [kind, b] : node.election.step()) {
      if (kind == K::enter || kind == K::probe) {
        const bool dead = w.nodes[b].state == Node::State::dead;
        if (dead && !is_cut(a, b)) {
          refused.push_back(b);
          continue;
        }
        Wire& line = wire(a, b);
        line.open = true;
        line.to_caller.clear();
        line.doubtful = w.nodes[b].paused;
        if (dead)
          line.to_caller.push_back({Message::Kind::close});  // arrives when the path is mended
        else
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
    for (int b = 0; b < n; ++b)
      if (wire(b, a).at_door && wire(b, a).joins && !std::ranges::count(proposal.members, b))
        proposal.members.push_back(b);
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
    for (int b = 0; b < n && node.membership >= 0; ++b)
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
      if (wire(b, a).enters || wire(b, a).joins) send_away(b, a);
    if (node.membership < 0) {
      node.agreed.clear();
      return step_outside(a);
    }
    meet(a);
  }

  void step_outside(int a) {
    w.nodes[a].state = Node::State::outside;
    hang_up_all(a);
    for (int b = 0; b < n; ++b) {
      if (wire(b, a).enters || wire(b, a).joins) send_away(b, a);
      if (wire(b, a).at_door) say(b, a, {Message::Kind::leave});
    }
  }

  void die(int a) {
    hang_up_all(a);
    for (Proposal& proposal : w.proposals)
      if (!proposal.formed) proposal.joined &= ~(1 << a);
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
    return w.nodes[a].membership >= 0 &&
           std::ranges::count(w.proposals[w.nodes[a].membership].members, b) > 0;
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
    line.joins = message.kind == Message::Kind::join;
    line.said = -2;
    if (line.joins) {
      if (!admits(b)) send_away(a, b);
      return;
    }
    // The door of a newcomer opens when its group has formed.
    if (host.state == Node::State::outside || host.membership < 0)
      return say(a, b, {Message::Kind::leave});
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
    if (node.state == Node::State::outside && message.kind == Message::Kind::proposal)
      return adopt(a, message.value, true);  // it was let in
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
        if (w.nodes[b].paused || w.nodes[b].state == Node::State::dead || (b != a && is_cut(a, b)))
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
                                    "wakes",    "dies",         "is cut off", "is reached again",
                                    "knocks at"};
  return "\n  " + std::to_string(event.a) + " " + kNames[static_cast<int>(event.kind)] + " " +
         std::to_string(event.b);
}

// Worlds that have been seen, by 128 bits of a digest each.
class Seen {
 public:
  // False if it was there already.
  struct Key {
    size_t first, second;
    bool operator==(const Key&) const = default;
  };
  bool insert(const Key& key) { return keys_.insert(key).second; }
  bool insert(const World& world) { return insert(key_of(world)); }
  bool contains(const Key& key) const { return keys_.contains(key); }
  size_t size() const { return keys_.size(); }

  Key key_of(const World& world) {
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
      add(static_cast<int>(node.state) * 16 + node.newcomer * 8 + node.cut * 4 + node.paused * 2 +
          node.was_paused);
      add(node.membership);
      add_all(node.agreed);
      add(node.led);
      const int election =
          elections_.emplace(node.election, static_cast<int>(elections_.size())).first->second;
      for (const int shift : {0, 8, 16, 24}) add(election >> shift);
    }
    for (const Wire& line : world.wires) {
      add(line.open + 2 * line.at_door + 4 * line.enters + 8 * line.told + 16 * line.doubtful +
          32 * line.joins);
      add(line.said);
      for (const auto* const queue : {&line.to_door, &line.to_caller}) {
        add(static_cast<int>(queue->size()));
        for (const Message& message : *queue) {
          add(static_cast<int>(message.kind));
          add(message.value);
        }
      }
    }
    for (const int left :
         {world.left.pauses, world.left.deaths, world.left.cuts, world.left.newcomers})
      add(left);
    add(world.killed);
    const size_t first = std::hash<std::string>()(key);
    key += static_cast<char>(first);
    key += 'x';
    return {first, std::hash<std::string>()(key)};
  }

 private:
  struct Hash {
    size_t operator()(const Key& key) const { return key.first; }
  };

  std::unordered_set<Key, Hash> keys_;
  std::map<Election, int> elections_;
};

// Worlds from which all comes to a good end.
using Settled = Seen;

std::string settles(const World& world, Settled& settled) {
  for (const bool wake : {true, false}) {
    World copy = world;
    Model model(copy);
    std::vector<Seen::Key> passed;
    const auto known = [&](const World& now) {
      passed.push_back(settled.key_of(now));
      return settled.contains(passed.back());
    };
    if (const std::string wrong = model.settle(wake, known); !wrong.empty())
      return wrong + (wake ? " (all are back)" : " (none is back)") + model.print();
    for (const Seen::Key& each : passed) settled.insert(each);
  }
  return {};
}

// Every order, up to a number of states: breadth first, or, if there is no limit, depth first,
// which takes less memory. Returns how many states are left.
size_t explore(int members, const Faults& faults, size_t most) {
  Seen seen;
  Settled settled;
  std::deque<World> next = {Model::begin(members, faults)};
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
    if (const std::string wrong = settles(world, settled); !wrong.empty()) {
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

void wander(int members, const Faults& faults, int walks, unsigned seed) {
  std::mt19937 random(seed);
  for (int walk = 0; walk < walks; ++walk) {
    World world = Model::begin(members, faults);
    Settled settled;
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
      const std::string wrong = step % 10 == 0 ? settles(world, settled) : "";
      ASSERT_EQ(wrong, "") << "walk " << walk << ", step " << step << " of seed " << seed
                           << history;
    }
  }
}

constexpr size_t kFewStates = 12'000;

size_t number_from(const char* variable, size_t fallback) {
  const char* const text = std::getenv(variable);
  return text ? std::stoul(text) : fallback;
}

// All states; with sanitizers, which are slow, only the first ones.
void exhaust(int members, const Faults& faults) {
  const bool sanitized = std::getenv("ARTEL_SANITIZED") != nullptr;
  const size_t left = explore(members, faults, sanitized ? kFewStates : SIZE_MAX);
  EXPECT_TRUE(sanitized || left == 0) << left << " states are left";
}

TEST(Election, AllOrdersOfEventsOfThreeMembersOfWhichOneDiesEndInOneMembership) {
  exhaust(3, {.deaths = 1});
}

TEST(Election, AllOrdersOfEventsOfTwoMembersThatStopTwiceEndInOneMembership) {
  exhaust(2, {.pauses = 2});
}

TEST(Election, AllOrdersOfEventsOfThreeMembersOfWhichOneStopsEndInOneMembership) {
  exhaust(3, {.pauses = 1});
}

TEST(Election, AllOrdersOfEventsOfThreeMembersOfWhichOneStopsAndOneDiesEndInOneMembership) {
  exhaust(3, {.pauses = 1, .deaths = 1});
}

TEST(Election, AllOrdersOfEventsOfMembersOfWhichOneIsCutOffEndInOneMembership) {
  exhaust(3, {.cuts = 1});
  exhaust(2, {.pauses = 1, .cuts = 1});
}

TEST(Election, AllOrdersOfEventsOfTwoMembersAndANewcomerEndInOneMembership) {
  exhaust(2, {.newcomers = 1});
  exhaust(2, {.deaths = 1, .newcomers = 1});
}

TEST(Election, OrdersOfEventsWithMoreFaultsEndInOneMembership) {
  const size_t states = number_from("ARTEL_ELECTION_STATES", kFewStates);
  explore(3, {.pauses = 2}, states);
  explore(3, {.pauses = 2, .deaths = 1}, states);
  explore(3, {.pauses = 1, .cuts = 1}, states);
  explore(3, {.deaths = 1, .cuts = 1}, states);
  explore(2, {.pauses = 1, .newcomers = 1}, states);
  explore(3, {.newcomers = 1}, states);
}

TEST(Election, RandomOrdersOfEventsOfFourAndFiveMembersEndInOneMembership) {
  const unsigned seed = std::random_device()();
  const int walks = static_cast<int>(number_from("ARTEL_ELECTION_WALKS", 1'000));
  wander(3, {.pauses = 4, .deaths = 1}, walks, seed);
  wander(4, {.pauses = 3, .deaths = 1}, walks, seed);
  wander(5, {.pauses = 4, .deaths = 2}, walks, seed);
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
