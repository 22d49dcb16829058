// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Call, Vault} from "./Vault.sol";
import {Token} from "./Token.sol";

struct TokenAmount {
    address token;
    uint256 amount;
}

struct Route {
    bytes32 salt;
    uint64 deadline;
    address portal;
    uint256 nativeAmount;
    TokenAmount[] tokens;
    Call[] calls;
}

struct Reward {
    uint64 deadline;
    address creator;
    address prover;
    uint256 nativeAmount;
    TokenAmount[] tokens;
}

/// Where intents are published and funded on the source chain, and fulfilled on the other.
/// The sandbox places its code at one address of every chain, so it has no constructor.
contract Portal {
    mapping(bytes32 => bool) public isPublished;
    mapping(bytes32 => bytes32) public claimants;

    event IntentPublished(
        bytes32 indexed intentHash,
        uint64 destination,
        bytes route,
        address indexed creator,
        address indexed prover,
        uint64 rewardDeadline,
        uint256 rewardNativeAmount,
        TokenAmount[] rewardTokens
    );
    event IntentFunded(bytes32 indexed intentHash, address indexed funder, bool complete);
    event IntentFulfilled(bytes32 indexed intentHash, bytes32 indexed claimant);
    event IntentRefunded(bytes32 indexed intentHash, address indexed refundee);

    error IntentAlreadyExists(bytes32 intentHash);
    error InsufficientFunds(bytes32 intentHash);
    error InvalidHash(bytes32 expectedHash);
    error IntentExpired();
    error IntentAlreadyFulfilled(bytes32 intentHash);
    error IntentNotExpired(bytes32 intentHash);

    function getIntentHash(uint64 destination, bytes calldata route, Reward calldata reward)
        public
        pure
        returns (bytes32 intentHash, bytes32 routeHash, bytes32 rewardHash)
    {
        routeHash = keccak256(route);
        rewardHash = keccak256(abi.encode(reward));
        intentHash = keccak256(abi.encodePacked(destination, routeHash, rewardHash));
    }

    function intentVaultAddress(uint64 destination, bytes calldata route, Reward calldata reward)
        external
        view
        returns (address)
    {
        (bytes32 intentHash,,) = getIntentHash(destination, route, reward);
        return vaultOf(intentHash);
    }

    function publishAndFund(uint64 destination, bytes calldata route, Reward calldata reward, bool allowPartial)
        external
        payable
        returns (bytes32 intentHash, address vault)
    {
        (intentHash,,) = getIntentHash(destination, route, reward);
        if (isPublished[intentHash]) revert IntentAlreadyExists(intentHash);
        isPublished[intentHash] = true;
        emit IntentPublished(
            intentHash,
            destination,
            route,
            reward.creator,
            reward.prover,
            reward.deadline,
            reward.nativeAmount,
            reward.tokens
        );
        vault = vaultOf(intentHash);
        (bool paid,) = vault.call{value: msg.value}("");
        bool complete = paid && vault.balance >= reward.nativeAmount;
        for (uint256 i = 0; i < reward.tokens.length; i++) {
            complete = fundToken(reward.tokens[i], vault, allowPartial) && complete;
        }
        if (!complete && !allowPartial) revert InsufficientFunds(intentHash);
        emit IntentFunded(intentHash, msg.sender, complete);
    }

    function fulfill(bytes32 intentHash, Route calldata route, bytes32 rewardHash, bytes32 claimant)
        external
        payable
    {
        bytes32 routeHash = keccak256(abi.encode(route));
        bytes32 expected = keccak256(abi.encodePacked(uint64(block.chainid), routeHash, rewardHash));
        if (expected != intentHash) revert InvalidHash(expected);
        if (block.timestamp > route.deadline) revert IntentExpired();
        if (claimants[intentHash] != 0) revert IntentAlreadyFulfilled(intentHash);
        claimants[intentHash] = claimant;
        address vault = vaultOf(intentHash);
        for (uint256 i = 0; i < route.tokens.length; i++) {
            Token(route.tokens[i].token).transferFrom(msg.sender, vault, route.tokens[i].amount);
        }
        opened(intentHash).execute{value: msg.value}(route.calls);
        emit IntentFulfilled(intentHash, claimant);
    }

    /// Returns the reward of an expired intent to its creator. Anyone may call it.
    function refund(uint64 destination, bytes32 routeHash, Reward calldata reward) external {
        bytes32 intentHash = keccak256(abi.encodePacked(destination, routeHash, keccak256(abi.encode(reward))));
        if (block.timestamp <= reward.deadline) revert IntentNotExpired(intentHash);
        Vault vault = opened(intentHash);
        Call[] memory calls = new Call[](reward.tokens.length + 1);
        for (uint256 i = 0; i < reward.tokens.length; i++) {
            Token token = Token(reward.tokens[i].token);
            bytes memory data = abi.encodeCall(token.transfer, (reward.creator, token.balanceOf(address(vault))));
            calls[i] = Call(address(token), data, 0);
        }
        calls[reward.tokens.length] = Call(reward.creator, "", address(vault).balance);
        vault.execute(calls);
        emit IntentRefunded(intentHash, reward.creator);
    }

    /// Takes what the vault lacks from the caller; true when the vault then has the whole amount.
    function fundToken(TokenAmount calldata wanted, address vault, bool allowPartial) private returns (bool) {
        Token token = Token(wanted.token);
        uint256 held = token.balanceOf(vault);
        if (held >= wanted.amount) return true;
        uint256 lacking = wanted.amount - held;
        uint256 added = lacking;
        if (allowPartial) {
            added = least(added, least(token.balanceOf(msg.sender), token.allowance(msg.sender, address(this))));
        }
        token.transferFrom(msg.sender, vault, added);
        return added == lacking;
    }

    function opened(bytes32 intentHash) private returns (Vault) {
        address vault = vaultOf(intentHash);
        return vault.code.length > 0 ? Vault(payable(vault)) : new Vault{salt: intentHash}();
    }

    function vaultOf(bytes32 intentHash) private view returns (address) {
        bytes32 codeHash = keccak256(type(Vault).creationCode);
        bytes32 hash = keccak256(abi.encodePacked(bytes1(0xff), address(this), intentHash, codeHash));
        return address(uint160(uint256(hash)));
    }

    function least(uint256 a, uint256 b) private pure returns (uint256) {
        return a < b ? a : b;
    }
}
