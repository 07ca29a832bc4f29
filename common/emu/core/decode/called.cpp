// SPDX-License-Identifier: MIT
//
// The graph of calls: from the kernel along names and along pointers, to all that it may reach.

#include "common/emu/core/decode/called.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

namespace gg::emu {

const Operand* callee_of(const Statement& call) {
  const size_t at = !call.operands.empty() && call.operands[0].kind == Operand::Kind::vector ? 1 : 0;
  return call.opcode == "call" && at < call.operands.size() ? &call.operands[at] : nullptr;
}

bool may_reach(const Prototype& prototype, const Function& function) {
  const auto same = [](const std::vector<Variable>& a, const std::vector<Variable>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Variable& x, const Variable& y) {
      return x.space == Space::param && y.space == Space::param && x.bytes == y.bytes;
    });
  };
  if (function.entry || function.declared_only) return false;
  if (!prototype.targets.empty()) {
    return same(function.params, function.params) && same(function.returns, function.returns) &&
           std::find(prototype.targets.begin(), prototype.targets.end(), function.name) !=
               prototype.targets.end();
  }
  return same(prototype.params, function.params) && same(prototype.returns, function.returns);
}

const Statement& end_of_call() {
  static const auto& statement = *[] {
    auto* s = new Statement;
    s->opcode = "ret";
    s->text = "ret;  // the end of the function";
    return s;
  }();
  return statement;
}

namespace {

class Calls {
 public:
  Calls(const Module& module, const Function& kernel) : module_(module) {
    for (const auto& function : module.functions) {
      if (!function->declared_only) by_name_[function->name] = function.get();
    }
    reach(kernel);
    while (!waiting_.empty()) {
      const Function* next = waiting_.back();
      waiting_.pop_back();
      look_at(*next);
      if (waiting_.empty()) follow_pointers();
    }
  }

  // Without those that are called by name and never again from where they lead to.
  std::vector<const Function*> to_call() {
    leave_rings();
    std::vector<const Function*> result;
    for (const auto& function : module_.functions) {
      const bool pointed_at = pointed_at_.count(function.get()) != 0;
      if (pointed_at || (left_.count(function.get()) && !function->entry)) result.push_back(function.get());
    }
    return result;
  }

 private:
  const Function* named(const std::string& name) const {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : found->second;
  }
  void reach(const Function& f) {
    if (calls_.insert({&f, {}}).second) waiting_.push_back(&f);
  }
  void take_address(const Operand& o) {
    if (const Function* f = named(o.name)) addresses_.insert(f);
    for (const Operand& each : o.elements) take_address(each);
  }
  void look_at(const Function& f) {
    for (const Statement& s : f.body) {
      const Operand* callee = callee_of(s);
      if (!callee) {
        for (const Operand& o : s.operands) take_address(o);
      } else if (callee->kind == Operand::Kind::reg) {
        if (s.prototype) through_pointers_.push_back({&f, s.prototype.get()});
      } else if (const Function* target = named(callee->name)) {
        calls_[&f].insert(target);
        reach(*target);
      }
    }
  }
  // Once more when functions are found whose address others take.
  void follow_pointers() {
    if (through_pointers_.empty()) return;
    for (const Variable& v : module_.variables) {
      for (const Variable::Address& a : v.addresses) {
        if (const Function* f = named(a.symbol)) addresses_.insert(f);
      }
    }
    for (const auto& [caller, prototype] : through_pointers_) {
      for (const std::string& target : prototype->targets) {
        if (const Function* f = named(target)) addresses_.insert(f);
      }
    }
    for (const auto& [caller, prototype] : through_pointers_) {
      for (const Function* f : addresses_) {
        if (!may_reach(*prototype, *f)) continue;
        pointed_at_.insert(f);
        calls_[caller].insert(f);
        reach(*f);
      }
    }
  }
  // Leaves what is on a ring of calls, or on a way from one ring to another.
  void leave_rings() {
    for (const auto& [f, targets] : calls_) left_.insert(f);
    for (const bool forward : {true, false}) {
      std::map<const Function*, std::vector<const Function*>> others;  // who waits for a function
      std::map<const Function*, size_t> pending;
      for (const auto& [f, targets] : calls_) {
        for (const Function* target : targets) {
          const Function* from = forward ? f : target;
          const Function* to = forward ? target : f;
          if (!left_.count(from) || !left_.count(to)) continue;
          others[to].push_back(from);
          ++pending[from];
        }
      }
      std::vector<const Function*> free;
      for (const Function* f : left_) {
        if (pending[f] == 0) free.push_back(f);
      }
      while (!free.empty()) {
        const Function* f = free.back();
        free.pop_back();
        left_.erase(f);
        for (const Function* other : others[f]) {
          if (--pending[other] == 0) free.push_back(other);
        }
      }
    }
  }

  const Module& module_;
  std::map<std::string, const Function*> by_name_;
  std::map<const Function*, std::set<const Function*>> calls_;  // of all that are reached
  std::vector<const Function*> waiting_;
  std::set<const Function*> addresses_, pointed_at_, left_;
  std::vector<std::pair<const Function*, const Prototype*>> through_pointers_;
};

}  // namespace

std::vector<const Function*> functions_to_call(const Module& module, const Function& kernel) {
  const auto calls = [](const Statement& s) { return s.opcode == "call"; };
  if (std::none_of(kernel.body.begin(), kernel.body.end(), calls)) return {};
  return Calls(module, kernel).to_call();
}

}  // namespace gg::emu
